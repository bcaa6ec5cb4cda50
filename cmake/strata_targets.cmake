# One static library a folder of src/ with its rooms: strata_folder(NAME DEPENDS target…).
# Files called *_cuda.cpp or *.cu belong to the CUDA backend (strata_cuda_backend), not to the folder's library.
function(strata_folder name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  set(target strata_${name})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp
       ${CMAKE_SOURCE_DIR}/src/${name}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_cuda\\.cpp$")
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS})
endfunction()

# VARIABLE ← our libraries among what a target links, directly or not, each once.
function(strata_libraries_of target variable)
  set(pending ${target})
  set(found)
  while(pending)
    list(POP_FRONT pending library)
    get_target_property(linked ${library} INTERFACE_LINK_LIBRARIES)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "EXECUTABLE")
      get_target_property(linked ${library} LINK_LIBRARIES)
    elseif(type STREQUAL "STATIC_LIBRARY")
      list(APPEND found ${library})
    endif()
    list(FILTER linked INCLUDE REGEX "^strata")
    list(REMOVE_ITEM linked ${found})
    list(APPEND pending ${linked})
    list(REMOVE_DUPLICATES pending)
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# For a program whose own files are not optimized. An inline function that was not inlined is in every object file that calls
# it, and the linker keeps the first: without this the libraries, which are optimized, would run the program's slow ones.
function(strata_link_libraries_first target)
  strata_libraries_of(${target} libraries)
  list(FILTER libraries EXCLUDE REGEX "^strata_(verbs|bench)$") # not optimized either
  list(TRANSFORM libraries REPLACE ".+" "$<TARGET_FILE:\\0>")
  list(JOIN libraries " " libraries)
  target_link_options(${target} PRIVATE "SHELL:-Wl,--whole-archive ${libraries} -Wl,--no-whole-archive")
endfunction()

# A shared object of CUDA sources that is loaded at run time: strata_cuda_module(TARGET SOURCES … LINK …).
function(strata_cuda_module target)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON UNITY_BUILD OFF
                                             CUDA_ARCHITECTURES "${STRATA_CUDA_ARCHITECTURES}"
                                             CUDA_RUNTIME_LIBRARY Static)
  # 554: nvcc 13 takes MatrixView's conversion to constant elements for one that is never used.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Wno-pedantic --expt-relaxed-constexpr -lineinfo
                                           --diag-suppress=554>)
  if(NOT STRATA_CUDA_OPTIMIZED)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcicc -O1 -Xptxas -O1>")
  endif()
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src
                                               ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE ${arg_LINK})
  # What it lacks is to fail here, where there is no GPU, and not where it is loaded.
  target_link_options(${target} PRIVATE LINKER:-z,defs)
endfunction()

# VARIABLE ← what says whether the library and libstrata_cuda.so fit together: "VERSION+HASH", of the project's version and of
# all our headers that src/kernels/backend/backend.hpp includes, directly or not. Nobody has to remember to count an interface up,
# and an edit of any of them configures anew.
function(strata_backend_version variable)
  set(pending src/kernels/backend/backend.hpp)
  set(seen)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${header})
    file(STRINGS ${CMAKE_SOURCE_DIR}/${header} includes REGEX "^#include \"")
    foreach(line ${includes})
      string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" target ${line})
      foreach(folder include src)
        if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/${target})
          list(APPEND pending ${folder}/${target})
        endif()
      endforeach()
    endforeach()
  endwhile()
  list(SORT seen)
  set(bytes)
  foreach(header ${seen})
    file(SHA256 ${CMAKE_SOURCE_DIR}/${header} one)
    string(APPEND bytes "${header} ${one}\n")
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  endforeach()
  string(SHA256 hash "${bytes}")
  string(SUBSTRING ${hash} 0 12 hash)
  set(${variable} "${PROJECT_VERSION}+${hash}" PARENT_SCOPE)
endfunction()

# libstrata_cuda.so: the CUDA backend. libstrata_peers_cuda.so: what the benchmarks compare with; never part of the library.
function(strata_cuda_targets)
  find_package(CUDAToolkit 12.5 REQUIRED) # cudaGetDriverEntryPointByVersion
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/*.cu ${CMAKE_SOURCE_DIR}/src/kernels/*.cu
       ${CMAKE_SOURCE_DIR}/src/kernels/*/*.cu)
  strata_cuda_module(strata_cuda SOURCES ${sources} LINK strata_base strata_matrix strata_schedule CUDA::cublas CUDA::cublasLt)
  strata_cuda_module(strata_peers_cuda SOURCES ${CMAKE_SOURCE_DIR}/bench/peer_cusolver.cu
                     ${CMAKE_SOURCE_DIR}/bench/peer_cudss.cu
                     ${CMAKE_SOURCE_DIR}/bench/peer_hermitian.cu ${CMAKE_SOURCE_DIR}/bench/peer_irs.cu
                     ${CMAKE_SOURCE_DIR}/bench/peer_lu.cu
                     ${CMAKE_SOURCE_DIR}/bench/peer_magma.cu ${CMAKE_SOURCE_DIR}/bench/peer_small.cu
                     ${CMAKE_SOURCE_DIR}/bench/peer_tall.cu LINK CUDA::cusolver CUDA::cublas ${CMAKE_DL_LIBS})
endfunction()

# libstrata_peer_cholmod.so: CHOLMOD for the benchmarks, where it is installed. Its supernodal module has the GPL, so that
# neither the library nor the program is linked with it.
function(strata_cholmod_target)
  find_path(STRATA_CHOLMOD_INCLUDE cholmod.h HINTS ${STRATA_AMD_INCLUDE} PATH_SUFFIXES suitesparse)
  find_library(STRATA_CHOLMOD_LIBRARY cholmod)
  if(NOT STRATA_CHOLMOD_INCLUDE OR NOT STRATA_CHOLMOD_LIBRARY)
    message(STATUS "CHOLMOD not found: bench sparse has no peer")
    return()
  endif()
  add_library(strata_peer_cholmod MODULE ${CMAKE_SOURCE_DIR}/bench/peer_cholmod.cpp)
  target_include_directories(strata_peer_cholmod PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(strata_peer_cholmod SYSTEM PRIVATE ${STRATA_CHOLMOD_INCLUDE})
  target_link_libraries(strata_peer_cholmod PRIVATE ${STRATA_CHOLMOD_LIBRARY} ${CMAKE_DL_LIBS})
endfunction()
