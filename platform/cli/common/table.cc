#include "cli/common/table.h"

#include <algorithm>
#include <utility>

namespace muster::cli {

namespace {

/// Without what a terminal obeys: U+0080 to U+009F (C2 80 to C2 9F) as well as ESC and the like.
std::string on_one_line(std::string text) {
  bool may_begin_one = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const bool completes_one = may_begin_one && code >= 0x80 && code <= 0x9f;
    may_begin_one = code == 0xc2;
    if (completes_one) text.replace(--i, 2, " ");
    if (code < 0x20 || code == 0x7f) text[i] = ' ';
  }
  return text;
}

void append_cell(std::string& line, const std::string& cell, size_t width, bool right) {
  const std::string padding(width - std::min(width, display_width(cell)), ' ');
  line += right ? padding + cell : cell + padding;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = on_one_line(std::move(cell));
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::to_string(std::string_view indent) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines.front().push_back(column.title);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], display_width(line[i]));
  }

  constexpr std::string_view kGap = "  ";
  std::string text;
  for (const auto& cells : lines) {
    std::string line(indent);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += kGap;
      append_cell(line, cells[i], widths[i], columns_[i].right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

size_t display_width(std::string_view text) {
  // Continuation bytes of UTF-8 are 10xxxxxx.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0) != 0x80;
  }));
}

std::string fields(const std::vector<std::pair<std::string, std::string>>& entries) {
  Table table({{""}, {""}});
  for (const auto& [key, value] : entries) {
    if (!value.empty()) table.add({key, value});
  }
  const std::string text = table.to_string();
  return text.substr(text.find('\n') + 1);  // without the empty titles
}

}  // namespace muster::cli
