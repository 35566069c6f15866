// What a call gives back: its value, or the Error that took its place. No exception crosses the
// library's border.
//
//   Result<Communicator> world = Communicator::connect(options);
//   if (!world) return report(world.error());
//   world->barrier();
//
// Thread-safety: values like any other; share one between threads only under a lock of your own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace muster::collective {

/// What kind of thing went wrong, for a program that has to choose; the sentence is for people.
enum class ErrorCode {
  kBadArgument = 1,     // the call itself cannot be right: a null buffer, a root past the last rank
  kConfiguration = 2,   // options or environment variables are missing or contradict each other
  kAuthentication = 3,  // the two sides of a connection hold different keys
  kMismatch = 4,        // two ranks disagree: on the world, or on which collective is being called
  kPeerLost = 5,        // a rank ended; `rank` and `host` say which
  kTimeout = 6,         // a rank is there, or may be, but did not answer in time
  kSystem = 7,          // the operating system refused; the sentence carries its reason
};

/// One failure. `message` says what happened, with the values that matter; `advice`, where there
/// is some to give, what to do about it. Neither ends in a full stop.
struct Error {
  static constexpr int kNobody = -1;

  ErrorCode code = ErrorCode::kSystem;
  std::string message;
  std::string advice = {};
  int rank = kNobody;     // the rank that is to blame, the same on every rank that reports it
  std::string host = {};  // the host name of that rank

  /// Both sentences on one line.
  std::string to_string() const { return advice.empty() ? message : message + "; " + advice; }
};

/// A T or an E. Reading the one that is not there is a bug in the caller, and undefined.
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
