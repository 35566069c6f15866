// The fields in which two records of one type differ, by the names of job files.
//
// Follows the table of the type, so a new field needs nothing here. A field that one of two records
// leaves at its default has the default's value.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/table.h"

namespace muster::record {

struct Difference {
  std::string path;  ///< "scheduling.priority", "environment.LR", "volumes[1].target"
  /// The values, as JSON in the human form. Nothing: the record has no such field or element.
  std::optional<std::string> left;
  std::optional<std::string> right;

  bool operator==(const Difference&) const = default;
};

/// In the order of the rows; keys of maps in the order of the alphabet. Lists of texts or numbers
/// are compared as a whole, lists of records element by element.
std::vector<Difference> differences(const Table& table, const void* left, const void* right);

template <class T>
std::vector<Difference> differences(const T& left, const T& right) {
  return differences(table_for<T>(), &left, &right);
}

}  // namespace muster::record
