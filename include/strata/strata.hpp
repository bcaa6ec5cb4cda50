#pragma once
// Everything: #include <strata/strata.hpp>.

#include "strata/calibrate.hpp"
#include "strata/cholesky.hpp"
#include "strata/cholesky_options.hpp"
#include "strata/detect.hpp"
#include "strata/device_cholesky.hpp"
#include "strata/element.hpp"
#include "strata/error.hpp"
#include "strata/geostat.hpp"
#include "strata/io.hpp"
#include "strata/machine.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"
#include "strata/qr.hpp"
#include "strata/report.hpp"
#include "strata/trace.hpp"
#include "strata/trace_export.hpp"
