#pragma once
// cuDSS where it is installed: loaded at run time, never linked.
//
// Contract: the prototypes and numbers are those of cuDSS 1.0 (cudss.h, cudss_data_types.h); other
// major versions are refused, since matrices were described otherwise before. Throws
// std::runtime_error with one line where cuDSS is not, or is another. Loaded once, it stays for the
// rest of the process.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "bench/installed_library.hpp"

namespace strata::bench {

class CudssLibrary {
 public:
  static constexpr std::array<const char*, 2> kFiles{"libcudss.so.1", "libcudss.so"};

  // cudssPhase_t
  static constexpr int kAnalysis = 3;
  static constexpr int kFactorization = 4;
  static constexpr int kRefactorization = 8;
  static constexpr int kSolve = 1008;
  // cudssDataParam_t
  static constexpr int kInfo = 0;
  static constexpr int kFactorEntries = 1;
  // cudaDataType_t
  static constexpr int kDoubles = 1;
  static constexpr int kIntegers32 = 10;
  // cudssMatrixType_t, cudssMatrixViewType_t
  static constexpr int kPositiveDefinite = 3;
  static constexpr int kLowerTriangle = 1;

  /// Takes the first of the files that loads.
  explicit CudssLibrary(std::span<const char* const> files = kFiles) : library_("cuDSS", files) {
    library_.bind(get_property, "cudssGetProperty");
    for (int k = 0; k < 3; ++k)
      InstalledLibrary::check("cudssGetProperty", get_property(k, &version_.at(k)));
    if (version_[0] != 1)
      throw std::runtime_error("cuDSS " + version() + " is here; what is compared with is 1");
    library_.bind(create, "cudssCreate");
    library_.bind(set_threading_layer, "cudssSetThreadingLayer");
    library_.bind(destroy, "cudssDestroy");
    library_.bind(create_config, "cudssConfigCreate");
    library_.bind(destroy_config, "cudssConfigDestroy");
    library_.bind(create_data, "cudssDataCreate");
    library_.bind(destroy_data, "cudssDataDestroy");
    library_.bind(get_data, "cudssDataGet");
    library_.bind(create_sparse, "cudssMatrixCreateCsr");
    library_.bind(create_dense, "cudssMatrixCreateDn");
    library_.bind(set_values, "cudssMatrixSetValues");
    library_.bind(destroy_matrix, "cudssMatrixDestroy");
    library_.bind(execute, "cudssExecute");
  }

  /// "1.0.0".
  [[nodiscard]] std::string version() const {
    return std::to_string(version_[0]) + "." + std::to_string(version_[1]) + "." +
           std::to_string(version_[2]);
  }

  // Handles are pointers, enumerations ints; sizes are bytes.
  int (*get_property)(int property, int* value) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  /// Null: what $CUDSS_THREADING_LIB names.
  int (*set_threading_layer)(void* handle, const char* file) = nullptr;
  int (*create_config)(void** config) = nullptr;
  int (*destroy_config)(void* config) = nullptr;
  int (*create_data)(void* handle, void** data) = nullptr;
  int (*destroy_data)(void* handle, void* data) = nullptr;
  int (*get_data)(void* handle, void* data, int what, void* value, std::size_t size,
                  std::size_t* written) = nullptr;
  /// The last three ints are the kind of the matrix, its triangle, and the base of its indices.
  int (*create_sparse)(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t entries,
                       const void* row_start, const void* row_end, const void* column,
                       const void* values, int offset_type, int index_type, int value_type,
                       int kind, int view, int base) = nullptr;
  /// The last int: 0 is column-major.
  int (*create_dense)(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                      const void* values, int value_type, int layout) = nullptr;
  int (*set_values)(void* matrix, const void* values) = nullptr;
  int (*destroy_matrix)(void* matrix) = nullptr;
  int (*execute)(void* handle, int phase, void* config, void* data, void* a, void* x,
                 void* b) = nullptr;

 private:
  InstalledLibrary library_;
  std::array<int, 3> version_{};
};

}  // namespace strata::bench
