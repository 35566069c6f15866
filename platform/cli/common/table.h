// Aligned columns without borders, text to the left and numbers to the right; and the "KEY value"
// lines at the head of a page.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

struct Column {
  std::string title;
  bool right = false;  ///< numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row may be shorter than the columns; it must not be longer.
  void add(std::vector<std::string> row);

  /// The title line and the rows, each line behind `indent`; no blanks at the ends of lines.
  /// Control characters in cells are shown as blanks: a row stays a line.
  std::string to_string(std::string_view indent = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns that a terminal needs for `text`: one a code point. Wide and combining characters are
/// not told apart; names and hosts have none.
size_t display_width(std::string_view text);

/// Keys are padded to one width; entries with an empty value are left out.
std::string fields(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace muster::cli
