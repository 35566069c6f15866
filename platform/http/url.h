// The target of a request: a percent-encoded path and query (RFC 3986; in a query '+' is a space,
// as HTML forms send it).
//
// Pure; thread-safe. message.h declares url_encoded().
#pragma once

#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::http {

/// The parameters of a URL: a map from name to value in which a name may occur several times, as in
/// ?label=a&label=b. A lookup of a single value returns the last.
class Query {
 public:
  using Pairs = std::multimap<std::string, std::string, std::less<>>;
  using value_type = Pairs::value_type;
  using const_iterator = Pairs::const_iterator;

  Query() = default;
  Query(std::initializer_list<value_type> pairs) : pairs_(pairs) {}
  Query(const std::map<std::string, std::string>& pairs)  // NOLINT: conversion is the point
      : pairs_(pairs.begin(), pairs.end()) {}

  /// By name; values of the same name in the order in which they were added.
  const_iterator begin() const { return pairs_.begin(); }
  const_iterator end() const { return pairs_.end(); }
  size_t size() const { return pairs_.size(); }
  bool empty() const { return pairs_.empty(); }

  size_t count(std::string_view name) const { return pairs_.count(name); }
  bool contains(std::string_view name) const { return pairs_.contains(name); }
  /// The last value of that name.
  const_iterator find(std::string_view name) const {
    const auto [first, behind] = pairs_.equal_range(name);
    return first == behind ? pairs_.end() : std::prev(behind);
  }
  /// REQUIRES: contains(name).
  const std::string& at(std::string_view name) const { return find(name)->second; }

  /// The last value of that name; adds an empty value if there is none.
  std::string& operator[](const std::string& name) {
    const auto [first, behind] = pairs_.equal_range(name);
    return first == behind ? pairs_.emplace(name, "")->second : std::prev(behind)->second;
  }
  /// Adds a value, whether or not the name exists.
  void add(std::string name, std::string value) {
    pairs_.emplace(std::move(name), std::move(value));
  }
  /// Adds the pairs of `other` whose names do not exist here.
  void merge(const Query& other) {
    Pairs more;
    for (const value_type& pair : other) {
      if (!contains(pair.first)) more.insert(pair);
    }
    pairs_.merge(more);
  }

  friend bool operator==(const Query&, const Query&) = default;

 private:
  Pairs pairs_;
};

struct Target {
  std::string path;  ///< decoded
  Query query;       ///< decoded

  bool operator==(const Target&) const = default;
};

/// Parses the origin form (/v1/jobs?x=1) and the absolute form that proxies send
/// (http://host/v1/jobs). nullopt: another form, a '%' without two hex digits, a NUL in the query,
/// or a path that could lead elsewhere than it seems: an encoded slash, a segment "." or "..", a
/// control character.
std::optional<Target> parse_target(std::string_view text);

/// The reverse. A '/' in the path is kept as a separator. An empty path becomes the root.
std::string format_target(std::string_view path, const Query& query);

}  // namespace muster::http
