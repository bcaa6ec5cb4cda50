# Everything comes from the system's packages; nothing is fetched.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED)
find_package(NLopt REQUIRED)
if(NOT TARGET NLopt::nlopt_cxx) # Debian installs the C++ interface without a target of its own
  find_library(NLOPT_CXX_LIBRARY nlopt_cxx REQUIRED)
  add_library(NLopt::nlopt_cxx INTERFACE IMPORTED)
  target_link_libraries(NLopt::nlopt_cxx INTERFACE ${NLOPT_CXX_LIBRARY} NLopt::nlopt)
endif()
find_path(STRATA_HWLOC_INCLUDE hwloc.h REQUIRED)
find_library(STRATA_HWLOC_LIBRARY hwloc REQUIRED)
add_library(strata_hwloc INTERFACE)
target_include_directories(strata_hwloc SYSTEM INTERFACE ${STRATA_HWLOC_INCLUDE})
target_link_libraries(strata_hwloc INTERFACE ${STRATA_HWLOC_LIBRARY})

# BLAS and LAPACK: only the header is needed to build. The library is loaded at run time
# (src/kernels/backend/blas_table.cpp); which file that is, is decided here. OpenBLAS is preferred, any other will do. Calls of
# one thread each are made from several threads, so a build of OpenBLAS with OpenMP, which takes the number of threads
# from OpenMP alone, is left aside where there is a choice.
find_path(STRATA_CBLAS_INCLUDE cblas.h
          PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu/openblas-pthread
                        aarch64-linux-gnu/openblas-pthread
          REQUIRED)
find_library(STRATA_OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread)
add_library(strata_blas INTERFACE)
target_include_directories(strata_blas SYSTEM INTERFACE ${STRATA_CBLAS_INCLUDE})
set(STRATA_BLAS_LIBRARIES ${STRATA_OPENBLAS_LIBRARY})
if(NOT STRATA_BLAS_LIBRARIES)
  find_package(LAPACK REQUIRED) # and BLAS, by itself
  list(FILTER LAPACK_LIBRARIES INCLUDE REGEX "\\.so[0-9.]*$")
  set(STRATA_BLAS_LIBRARIES ${LAPACK_LIBRARIES})
endif()
if(NOT STRATA_BLAS_LIBRARIES)
  message(FATAL_ERROR "no shared library of BLAS and LAPACK was found")
endif()

# The name by which programs ask for a shared library: libopenblas.so.0 for libopenblas.so, which only developers have.
function(strata_soname file result)
  set(name "")
  if(CMAKE_OBJDUMP)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE headers ERROR_QUIET)
    if(headers MATCHES "SONAME[ \t]+([^ \t\r\n]+)")
      set(name ${CMAKE_MATCH_1})
    endif()
  endif()
  if(NOT name)
    get_filename_component(name ${file} NAME)
  endif()
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# Several files, as of a BLAS and a LAPACK, are joined by ':'.
set(STRATA_BLAS_FOUND "")
set(STRATA_BLAS_NAMES "")
foreach(library ${STRATA_BLAS_LIBRARIES})
  strata_soname(${library} name)
  get_filename_component(folder ${library} DIRECTORY)
  string(APPEND STRATA_BLAS_FOUND ":${folder}/${name}")
  string(APPEND STRATA_BLAS_NAMES ":${name}")
endforeach()
string(SUBSTRING "${STRATA_BLAS_FOUND}" 1 -1 STRATA_BLAS_FOUND)
string(SUBSTRING "${STRATA_BLAS_NAMES}" 1 -1 STRATA_BLAS_NAMES)
message(STATUS "BLAS, loaded at run time: ${STRATA_BLAS_FOUND}")

# Orders of elimination. METIS (Apache-2.0) is loaded at run time, as a private instance (src/sparse/ordering/metis_library.cpp), so
# that only its header and its place are needed; of SuiteSparse AMD alone (BSD-3-Clause) is linked.
find_path(STRATA_METIS_INCLUDE metis.h REQUIRED)
find_library(STRATA_METIS_LIBRARY metis)
add_library(strata_metis_header INTERFACE)
target_include_directories(strata_metis_header SYSTEM INTERFACE ${STRATA_METIS_INCLUDE})
set(STRATA_METIS_FOUND "")
if(STRATA_METIS_LIBRARY)
  strata_soname(${STRATA_METIS_LIBRARY} name)
  get_filename_component(folder ${STRATA_METIS_LIBRARY} DIRECTORY)
  set(STRATA_METIS_FOUND ${folder}/${name})
endif()
message(STATUS "METIS, loaded at run time: ${STRATA_METIS_FOUND}")
find_path(STRATA_AMD_INCLUDE amd.h PATH_SUFFIXES suitesparse REQUIRED)
find_library(STRATA_AMD_LIBRARY amd REQUIRED)
add_library(strata_amd INTERFACE)
target_include_directories(strata_amd SYSTEM INTERFACE ${STRATA_AMD_INCLUDE})
target_link_libraries(strata_amd INTERFACE ${STRATA_AMD_LIBRARY})

# Checksums and fingerprints; the header has it all.
find_path(STRATA_URING_INCLUDE liburing.h REQUIRED)
find_library(STRATA_URING_LIBRARY uring REQUIRED)
add_library(strata_uring INTERFACE)
target_include_directories(strata_uring SYSTEM INTERFACE ${STRATA_URING_INCLUDE})
target_link_libraries(strata_uring INTERFACE ${STRATA_URING_LIBRARY})

find_path(STRATA_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(strata_xxhash INTERFACE)
target_include_directories(strata_xxhash SYSTEM INTERFACE ${STRATA_XXHASH_INCLUDE})

# What tests are linked with, to compare with: LAPACKE, and BLAS as anybody has it.
if(STRATA_TESTS)
  # Many digits, to measure how orthogonal Q is.
  find_path(STRATA_MPFR_INCLUDE mpfr.h REQUIRED)
  find_library(STRATA_MPFR_LIBRARY mpfr REQUIRED)
  add_library(strata_mpfr INTERFACE)
  target_include_directories(strata_mpfr SYSTEM INTERFACE ${STRATA_MPFR_INCLUDE})
  target_link_libraries(strata_mpfr INTERFACE ${STRATA_MPFR_LIBRARY})
  find_path(STRATA_LAPACKE_INCLUDE lapacke.h PATH_SUFFIXES openblas lapacke REQUIRED)
  find_library(STRATA_LAPACKE_LIBRARY NAMES lapacke REQUIRED)
  add_library(strata_linked_blas INTERFACE)
  target_include_directories(strata_linked_blas SYSTEM INTERFACE ${STRATA_LAPACKE_INCLUDE})
  target_link_libraries(strata_linked_blas INTERFACE strata_blas ${STRATA_LAPACKE_LIBRARY}
                                                     ${STRATA_BLAS_LIBRARIES})
endif()
