// The result of a call: its value, or an Error. No exception leaves the library.
//
//   Result<Communicator> world = Communicator::connect(options);
//   if (!world) return report(world.error());
//   world->barrier();
//
// Thread-safety: values; guard a value that several threads use with a lock.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace muster::collective {

/// The kind of an error, for programs; the message is for people.
enum class ErrorCode {
  kBadArgument = 1,     // an argument is invalid: a null buffer, a root past the last rank
  kConfiguration = 2,   // options or environment variables are missing or contradict each other
  kAuthentication = 3,  // the two sides of a connection hold different keys
  kMismatch = 4,        // two ranks disagree: on the world, or on which collective is being called
  kPeerLost = 5,        // a rank ended; see `rank` and `host`
  kTimeout = 6,         // a rank did not answer in time
  kSystem = 7,          // an error of the operating system; the message has its reason
};

/// A failure. `message` describes it, with the values that matter; `advice`, which may be empty,
/// suggests a remedy. Neither ends in a full stop.
struct Error {
  static constexpr int kNobody = -1;

  ErrorCode code = ErrorCode::kSystem;
  std::string message;
  std::string advice = {};
  int rank = kNobody;     // the rank at fault, equal on every rank that reports it
  std::string host = {};  // the host name of that rank

  /// Both sentences on one line.
  std::string to_string() const { return advice.empty() ? message : message + "; " + advice; }
};

/// A T or an E. Reading the absent one is a bug in the caller, with undefined behaviour.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : held_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }

  T& operator*() & { return *std::get_if<0>(&held_); }
  const T& operator*() const& { return *std::get_if<0>(&held_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&held_)); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  E& error() { return *std::get_if<1>(&held_); }
  const E& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<T, E> held_;
};

/// Success without a value (`return {};`), or an E.
template <typename E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(E error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  E& error() { return *error_; }
  const E& error() const { return *error_; }

 private:
  std::optional<E> error_;
};

using Status = Result<void>;

}  // namespace muster::collective
