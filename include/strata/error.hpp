#pragma once
// Errors that cross the public boundary.
//
// Contract: everything that goes wrong, other than a numerical outcome of a factorization, is
// thrown as one `strata::Error`. Its message is a single line that names the offending value. A
// numerical outcome (a matrix that is not positive definite) is a value instead: see `FactorInfo`.

#include <stdexcept>
#include <string>
#include <utility>

namespace strata {

enum class ErrorKind {
  misuse,     ///< an argument, a name or shapes that do not fit together
  input,      ///< a file that is missing, truncated, malformed or holds a value that is not finite
  numerical,  ///< the data make the problem itself unsolvable (not symmetric, coincident points)
  memory,     ///< a budget or an allocation that does not suffice
  device,     ///< a device that is absent or failed
  storage,    ///< reading or writing failed
  cancelled,  ///< the caller asked to stop
};

/// The one exception type of the library. `where()` names the part that raised it, e.g. "csv" or
/// "plan".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string where, const std::string& message)
      : std::runtime_error(message), kind_(kind), where_(std::move(where)) {}

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  ErrorKind kind_;
  std::string where_;
};

}  // namespace strata
