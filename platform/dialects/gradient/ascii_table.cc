#include "dialects/gradient/ascii_table.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"

namespace muster::dialects::gradient {

namespace {

constexpr std::string_view kPlain = "\x1b[0m";

/// One column for each code point, and no control characters: tabs and carriage returns, which
/// safe_lines() keeps, would break the border.
std::string harmless(std::string text) {
  std::replace(text.begin(), text.end(), '\t', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return cli::safe_lines(text);
}

std::vector<std::string> lines_of(const AsciiTable::Cell& cell) {
  std::vector<std::string> lines = base::split(harmless(cell.value_or("None")), '\n');
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace

AsciiTable::AsciiTable(std::string title) : title_(harmless(std::move(title))) {}

void AsciiTable::add(const std::vector<Cell>& row) {
  std::vector<Lines> cells;
  for (const Cell& cell : row) cells.push_back(lines_of(cell));
  if (!rows_.empty()) cells.resize(rows_.front().size(), Lines(1));
  rows_.push_back(std::move(cells));
}

void AsciiTable::set_colour(size_t column, std::string_view escape) {
  if (colours_.size() <= column) colours_.resize(column + 1);
  colours_[column] = escape;
}

std::string AsciiTable::to_string(bool coloured) const {
  if (rows_.empty()) return "";
  const std::vector<size_t> all = widths();
  const std::string rule = border(all, "");
  std::string text = border(all, title_);
  for (size_t row = 0; row < rows_.size(); ++row) {
    append_row(text, row, all, coloured);
    if (row == 0 && rows_.size() > 1) text += rule;
  }
  return text + rule;
}

std::vector<size_t> AsciiTable::widths() const {
  std::vector<size_t> result(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (const std::string& line : row[i])
        result[i] = std::max(result[i], cli::display_width(line));
    }
  }
  return result;
}

std::string AsciiTable::border(const std::vector<size_t>& widths, std::string_view title) const {
  constexpr size_t kPadding = 2;
  std::string line;
  for (const size_t width : widths) line += "+" + std::string(width + kPadding, '-');
  // Between the corners; omitted if it does not fit.
  const size_t length = cli::display_width(title);
  if (length > 0 && length < line.size()) line.replace(1, length, title);
  return line + "+\n";
}

void AsciiTable::append_row(std::string& text, size_t row, const std::vector<size_t>& widths,
                            bool coloured) const {
  const std::vector<Lines>& cells = rows_[row];
  size_t height = 1;
  for (const Lines& lines : cells) height = std::max(height, lines.size());
  for (size_t line = 0; line < height; ++line) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string shown = line < cells[i].size() ? cells[i][line] : "";
      const std::string_view colour = coloured ? colour_of(row, i) : "";
      text += "| ";
      if (!colour.empty()) text += colour;
      text += shown;
      if (!colour.empty()) text += kPlain;
      text.append(widths[i] - cli::display_width(shown), ' ').append(" ");
    }
    text += "|\n";
  }
}

std::string_view AsciiTable::colour_of(size_t row, size_t column) const {
  return row == 0 || column >= colours_.size() ? "" : colours_[column];
}

}  // namespace muster::dialects::gradient
