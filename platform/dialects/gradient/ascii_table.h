// Tables with a border, drawn as Gradient's own program draws them:
//
//   +------+---------------+---------+
//   | Name | ID            | Status  |
//   +------+---------------+---------+
//   | dist | ea2lfbbpdyzsq | pending |
//   +------+---------------+---------+
//
// There is always a line below the first row. The title is on the upper border, at the left. A cell
// with newlines takes several lines.
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

  /// A row must not be longer than the first. Control characters are made harmless, because cells come
  /// from users, jobs and servers.
  void add(const std::vector<Cell>& row);

  /// The colour (an escape sequence) of a column, except in its first row.
  void set_colour(size_t column, std::string_view escape);

  /// Ends with a newline. `coloured`: with colours.
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
