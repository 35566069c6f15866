// Tables with a border, drawn as Gradient's own program draws them:
//
//   +------+---------------+---------+
//   | Name | ID            | Status  |
//   +------+---------------+---------+
//   | dist | ea2lfbbpdyzsq | pending |
//   +------+---------------+---------+
//
// The rule stands below the first row, also where that is no heading. A title lies on the upper
// border, from its left end on. A cell with newlines takes as many lines.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::dialects::gradient {

class AsciiTable {
 public:
  using Cell = std::optional<std::string>;  ///< nothing: "None"

  explicit AsciiTable(std::string title = {});

  /// A row may be shorter than the first; it must not be longer. Control characters are made
  /// harmless: cells come from users, jobs and servers.
  void add(const std::vector<Cell>& row);

  /// The colour of a column, but for its first row: an escape sequence that a terminal obeys.
  void set_colour(size_t column, std::string_view escape);

  /// Ends with a newline. Colours only where they are asked for.
  std::string to_string(bool coloured = false) const;

 private:
  using Lines = std::vector<std::string>;  ///< of one cell

  std::vector<size_t> widths() const;
  std::string border(const std::vector<size_t>& widths, std::string_view title) const;
  void append_row(std::string& text, size_t row, const std::vector<size_t>& widths,
                  bool coloured) const;
  std::string_view colour_of(size_t row, size_t column) const;

  std::string title_;
  std::vector<std::vector<Lines>> rows_;
  std::vector<std::string_view> colours_;  ///< by column; there may be fewer
};

inline constexpr std::string_view kBlue = "\x1b[34m";
inline constexpr std::string_view kRed = "\x1b[31m";

}  // namespace muster::dialects::gradient
