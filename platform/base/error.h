// Errors for people and for programs.
//
// An Error has one sentence about the invalid value and one with advice. An input with several
// faults has all of them, so that the user can correct them at once.
//
// Values without locks: as thread-safe as any value.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::base {

/// The kinds of errors that callers distinguish. Each has one HTTP status and one exit code
/// (docs/exit-codes.md).
enum class ErrorCode {
  kInvalid,      ///< the input is invalid; repeating it unchanged fails again
  kNotFound,     ///< the named object does not exist
  kConflict,     ///< it already exists, or its state does not allow the request
  kRefused,      ///< the caller lacks permission
  kExhausted,    ///< a resource is used up: disk, descriptors, memory, slots
  kUnavailable,  ///< the other side does not answer; a retry may succeed
  kTimeout,      ///< a time limit was exceeded
  kInternal,     ///< a defect or an unexpected answer of the system
};

/// The stable name of a code, e.g. "not_found".
std::string_view to_string(ErrorCode code);
/// The code of a stable name; kInternal for a name from a newer peer.
ErrorCode error_code_of(std::string_view name);

/// One fault in an input: its field ("tasks[1].env", or a flag), its description, and its line in
/// the file (0: not from a file).
struct Fault {
  std::string field;
  std::string what;
  int line = 0;

  bool operator==(const Fault&) const = default;
};

/// Typed details of an Error, for programs that decide by it or produce another message: each is a
/// struct derived from this. Programs never parse `what` or `advice`.
struct ErrorDetail {
  virtual ~ErrorDetail() = default;

 protected:
  ErrorDetail() = default;
  ErrorDetail(const ErrorDetail&) = default;
  ErrorDetail(ErrorDetail&&) = default;
  ErrorDetail& operator=(const ErrorDetail&) = default;
  ErrorDetail& operator=(ErrorDetail&&) = default;
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;
  std::string advice;
  std::vector<Fault> faults;
  std::shared_ptr<const ErrorDetail> detail;  ///< not sent to other processes

  /// `what`, then each fault and the advice on separate lines.
  std::string to_string() const;
};

/// The detail of this type, or nullptr.
template <class Detail>
const Detail* detail_of(const Error& error) {
  return dynamic_cast<const Detail*>(error.detail.get());
}

/// A kInvalid error about a user's text: "'12x' is not a time".
Error invalid_text(std::string_view text, const std::string& what);

/// "what: strerror(number)" with the code for the errno (ENOSPC is kExhausted, ...).
Error system_error(std::string what, int number);

}  // namespace muster::base
