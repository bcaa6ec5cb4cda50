#pragma once
// The tuning table of potrf: which variant and blocking is fastest on a GPU, by order.
//
// Contract: `strata bench potf2 --tune` writes the table, runs read it. One file holds the tables
// of several GPU models; a model without one gets the backend's defaults, and so does every device
// if there is no file. The host has nothing to tune and never reads it. What a run follows has to
// be told with its result, so a table knows which file it came from. Files of earlier versions have
// an `ib` in each entry, which is read over, and may have the variant `exclusive`, which counts as
// `fused`: both are for benchmarks alone now (kernels/dense/potrf_options.hpp).

#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "kernels/dense/potrf.hpp"
#include "strata/cholesky_options.hpp"

namespace strata {

struct PotrfTuning {
  struct Entry {
    Element precision = Element::fp64;
    std::int64_t n = 0;  ///< at least 1
    CholeskyBlocking blocking;

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::string model;  ///< as DeviceDescription has it: "NVIDIA H200"
  std::vector<Entry> entries;
  /// The file that was read, "PATH HEX" with tuning_checksum() of its bytes; "none", "ignored".
  std::string source = "none";

  /// The blocking of the entry whose order is the nearest to n by ratio (of two as near, the
  /// smaller); all zeros, "the backend's choice", if there is none for the precision.
  [[nodiscard]] CholeskyBlocking blocking_for(Element precision, std::int64_t n) const;
};

/// $STRATA_TUNING, else strata/potrf.json in $XDG_CONFIG_HOME or $HOME/.config; "" if none is set.
[[nodiscard]] std::string potrf_tuning_path();

/// The table of a model; empty if there is no such file or it knows the model not. Throws
/// Error{input}, naming the file, if it is not what `write_potrf_tuning` wrote.
[[nodiscard]] PotrfTuning read_potrf_tuning(const std::string& path, const std::string& model);

/// 64 bits by FNV-1a as 16 hexadecimal digits: names a file's bytes, protects from nothing.
/// Source: Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923.
[[nodiscard]] std::string tuning_checksum(std::string_view bytes);

/// Puts the entries into the file, which is made if need be, in place of those of the same model,
/// precision and order; everything else in it stays. Throws Error{storage}, and Error{input} as
/// reading does.
void write_potrf_tuning(const std::string& path, const PotrfTuning& tuning);

/// The table at potrf_tuning_path() for a device of a backend.
[[nodiscard]] PotrfTuning potrf_tuning_of(const Backend& backend, int index);

/// The same for runs on a path: the planned one promises bits that follow from the matrix, the tile
/// and the kind of device, so it ignores the file, which may be another one on each machine.
[[nodiscard]] PotrfTuning potrf_tuning_for(CholeskyPath path, const Backend& backend, int index);

/// What was asked for, with "as tuned" filled in where the table has the variant that was asked
/// for.
[[nodiscard]] CholeskyBlocking with_tuning(const CholeskyBlocking& asked,
                                           const CholeskyBlocking& tuned);

/// Throws Error{misuse} that names a value which no backend has.
void check_blocking(const CholeskyBlocking& blocking);

/// "auto", "fused", "left", "right"; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(CholeskyVariant variant) noexcept;
[[nodiscard]] CholeskyVariant parse_variant(const std::string& name);

}  // namespace strata
