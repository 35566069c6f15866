// The parameters of a URL: a map from name to value in which a name may stand several times, as in
// ?label=a&label=b. Who asks for one value gets the last.
//
// A value, no locks.
#pragma once

#include <initializer_list>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace muster::http {

class Query {
 public:
  using Pairs = std::multimap<std::string, std::string, std::less<>>;
  using value_type = Pairs::value_type;
  using const_iterator = Pairs::const_iterator;

  Query() = default;
  Query(std::initializer_list<value_type> pairs) : pairs_(pairs) {}
  Query(const std::map<std::string, std::string>& pairs)  // NOLINT: conversion is the point
      : pairs_(pairs.begin(), pairs.end()) {}

  /// By name; those of one name in the order they were added.
  const_iterator begin() const { return pairs_.begin(); }
  const_iterator end() const { return pairs_.end(); }
  size_t size() const { return pairs_.size(); }
  bool empty() const { return pairs_.empty(); }

  size_t count(std::string_view name) const { return pairs_.count(name); }
  bool contains(std::string_view name) const { return pairs_.contains(name); }
  /// The last of that name.
  const_iterator find(std::string_view name) const {
    const auto [first, behind] = pairs_.equal_range(name);
    return first == behind ? pairs_.end() : std::prev(behind);
  }
  /// REQUIRES: contains(name).
  const std::string& at(std::string_view name) const { return find(name)->second; }

  /// The last of that name, made where there is none.
  std::string& operator[](const std::string& name) {
    const auto [first, behind] = pairs_.equal_range(name);
    return first == behind ? pairs_.emplace(name, "")->second : std::prev(behind)->second;
  }
  /// One more, whether or not the name is there.
  void add(std::string name, std::string value) {
    pairs_.emplace(std::move(name), std::move(value));
  }
  /// Adds those whose names are not there.
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

}  // namespace muster::http
