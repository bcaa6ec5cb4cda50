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

# BLAS and LAPACK through their C interfaces. OpenBLAS is preferred, any other will do. Single-threaded calls are
# made from several threads, so a build of OpenBLAS with OpenMP is left aside where there is a choice.
find_package(BLAS REQUIRED)
find_package(LAPACK REQUIRED)
find_path(STRATA_CBLAS_INCLUDE cblas.h
          PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu/openblas-pthread
                        aarch64-linux-gnu/openblas-pthread
          REQUIRED)
find_path(STRATA_LAPACKE_INCLUDE lapacke.h PATH_SUFFIXES openblas lapacke REQUIRED)
find_library(STRATA_LAPACKE_LIBRARY NAMES lapacke REQUIRED)
find_library(STRATA_OPENBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread)
add_library(strata_blas INTERFACE)
target_include_directories(strata_blas SYSTEM INTERFACE ${STRATA_CBLAS_INCLUDE}
                                                        ${STRATA_LAPACKE_INCLUDE})
if(STRATA_OPENBLAS_LIBRARY)
  target_link_libraries(strata_blas INTERFACE ${STRATA_LAPACKE_LIBRARY} ${STRATA_OPENBLAS_LIBRARY})
else()
  target_link_libraries(strata_blas INTERFACE ${STRATA_LAPACKE_LIBRARY} LAPACK::LAPACK BLAS::BLAS)
endif()
