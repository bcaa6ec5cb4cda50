#pragma once
// Elimination of a panel on the GPU, and what is noted of it, for kernels that do it to blocks.
//
// Contract: as getrf.hpp has it, of a view (m × b, m >= b) that begins at its diagonal. Only for
// *_cuda.cu.

#include <cstddef>
#include <cstdint>

#include "device/device_cuda.hpp"
#include "kernels/dense/getrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata::lu_cuda {

struct Findings;

/// Device memory that eliminate() needs beside the panel.
template <class T>
[[nodiscard]] std::int64_t elimination_bytes(CudaQueue& queue, MatrixView<T> a);
/// P·A = L·U; pivot j says that rows j and pivot j were exchanged, counted from 0. `halves`: as of
/// subtract_panel(). Throws Error{device}.
template <class T>
void eliminate(CudaQueue& queue, MatrixView<T> a, std::int64_t* pivots, bool halves,
               std::byte* scratch);

/// Nothing was met yet.
void start_findings(const CudaStream& stream, Findings* findings);
/// A panel whose diagonal begins at row `first`, as note_columns() (lu_status_cuda.hpp) reads it.
template <class T>
void look(const CudaStream& stream, MatrixView<const T> a, std::int64_t first, bool afterwards,
          Findings* findings);
void put_status(const CudaStream& stream, const Findings* findings, PanelStatus* status);

}  // namespace strata::lu_cuda
