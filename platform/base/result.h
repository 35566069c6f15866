// Result<T>: a value or an Error.
//
//   Result<Port> port = parse_port(text);
//   if (!port) return port.error();
//   MUSTER_TRY(Port port, parse_port(text));   // the same in one line
//
// A wrapper of tl::expected (std::expected is C++23) that cannot be ignored by accident.
#pragma once

#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace muster::base {

template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  template <class U>
    requires(std::is_constructible_v<T, U> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
             !std::is_same_v<std::remove_cvref_t<U>, E>)
  Result(U&& value) : content_(std::forward<U>(value)) {}  // NOLINT: conversion is the point

  Result(E error) : content_(tl::unexpect, std::move(error)) {}  // NOLINT: conversion is the point

  explicit operator bool() const { return content_.has_value(); }
  bool ok() const { return content_.has_value(); }

  /// REQUIRES: ok().
  auto& operator*() & { return *content_; }
  const auto& operator*() const& { return *content_; }
  auto&& operator*() && { return *std::move(content_); }
  auto* operator->() { return content_.operator->(); }
  const auto* operator->() const { return content_.operator->(); }

  /// REQUIRES: !ok().
  const E& error() const& { return content_.error(); }
  E&& error() && { return std::move(content_).error(); }

 private:
  tl::expected<T, E> content_;
};

/// For void there is no value to dereference; the rest is the same.
template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Result() = default;
  Result(E error) : content_(tl::unexpect, std::move(error)) {}  // NOLINT: conversion is the point

  explicit operator bool() const { return content_.has_value(); }
  bool ok() const { return content_.has_value(); }
  const E& error() const& { return content_.error(); }
  E&& error() && { return std::move(content_).error(); }

 private:
  tl::expected<void, E> content_;
};

}  // namespace muster::base

#define MUSTER_JOIN_INNER(a, b) a##b
#define MUSTER_JOIN(a, b) MUSTER_JOIN_INNER(a, b)

/// MUSTER_TRY(declaration, expression): declares from the value, or returns the error.
#define MUSTER_TRY(declaration, ...)                              \
  auto MUSTER_JOIN(try_result_, __LINE__) = (__VA_ARGS__);        \
  if (!MUSTER_JOIN(try_result_, __LINE__))                        \
    return std::move(MUSTER_JOIN(try_result_, __LINE__)).error(); \
  declaration = *std::move(MUSTER_JOIN(try_result_, __LINE__))

/// MUSTER_CHECK(expression): returns the error of a Result<void>, or continues.
#define MUSTER_CHECK(...)                                                                         \
  do {                                                                                            \
    if (auto check_result = (__VA_ARGS__); !check_result) return std::move(check_result).error(); \
  } while (false)
