#include "simulate/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"

namespace muster::simulate {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Takes rows off the front of a text, keeping count of lines.
class RowReader {
 public:
  explicit RowReader(std::string_view text) : rest_(text) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  /// Nothing at the end. Empty lines are no rows.
  std::optional<CsvRow> next(std::vector<base::Fault>& faults) {
    while (!rest_.empty()) {
      CsvRow row{.line = line_, .cells = {}};
      while (read_cell(row, faults)) {
      }
      if (row.cells.size() > 1 || !row.cells.front().empty()) return row;
    }
    return std::nullopt;
  }

 private:
  /// Whether the row goes on behind this cell.
  bool read_cell(CsvRow& row, std::vector<base::Fault>& faults) {
    std::string cell;
    if (rest_.starts_with('"')) read_quoted(cell, faults);
    const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
    cell += rest_.substr(0, end);
    const bool goes_on = end < rest_.size() && rest_[end] == ',';
    if (!goes_on && cell.ends_with('\r')) cell.pop_back();
    if (end < rest_.size() && !goes_on) ++line_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    row.cells.push_back(std::move(cell));
    if (goes_on && rest_.empty()) row.cells.emplace_back();  // the last cell of all is empty
    return goes_on && !rest_.empty();
  }

  void read_quoted(std::string& cell, std::vector<base::Fault>& faults) {
    const int opened = line_;
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char character = rest_.front();
      rest_.remove_prefix(1);
      if (character == '"') {
        if (!rest_.starts_with('"')) return;
        rest_.remove_prefix(1);
      }
      if (character == '\n') ++line_;
      cell += character;
    }
    faults.push_back({.field = "", .what = "a quote is opened and never closed", .line = opened});
  }

  std::string_view rest_;
  int line_ = 1;
};

std::string_view without_blanks(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

void check_columns(const CsvTable& table, const std::vector<std::string>& required,
                   std::vector<base::Fault>& faults) {
  for (const std::string& name : required) {
    if (table.has(name)) continue;
    const std::string meant = base::nearest(name, table.columns);
    faults.push_back({.field = name,
                      .what = "the column is missing" +
                              (meant.empty() ? std::string() : "; there is one named " + meant),
                      .line = 1});
  }
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stopped == end;
}

base::Fault bad_cell(const CsvRow& row, std::string_view column, std::string_view cell,
                     const std::string& wanted) {
  return {.field = std::string(column),
          .what = "'" + std::string(cell) + "' is not " + wanted,
          .line = row.line};
}

std::string wanted_number(CsvRange range) {
  if (range.most == std::numeric_limits<int64_t>::max())
    return "a whole number of at least " + std::to_string(range.least);
  return "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most);
}

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::string_view CsvTable::text(const CsvRow& row, std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return {};
  return without_blanks(row.cells.at(static_cast<size_t>(found - columns.begin())));
}

int64_t CsvTable::whole(const CsvRow& row, std::string_view column, CsvRange range,
                        std::vector<base::Fault>& faults) const {
  const std::string_view cell = text(row, column);
  int64_t value = 0;
  if (parse_number(cell, value) && value >= range.least && value <= range.most) return value;
  faults.push_back(bad_cell(row, column, cell, wanted_number(range)));
  return range.least;
}

double CsvTable::decimal(const CsvRow& row, std::string_view column,
                         std::vector<base::Fault>& faults) const {
  const std::string_view cell = text(row, column);
  double value = 0;
  if (parse_number(cell, value) && std::isfinite(value) && value >= 0) return value;
  faults.push_back(bad_cell(row, column, cell, "a number of at least 0"));
  return 0;
}

base::Result<CsvTable> parse_csv(std::string_view text, std::string_view what,
                                 const std::vector<std::string>& required_columns) {
  CsvTable table;
  std::vector<base::Fault> faults;
  RowReader reader(text);
  if (std::optional<CsvRow> header = reader.next(faults)) {
    for (const std::string& name : header->cells) table.columns.emplace_back(without_blanks(name));
  }
  check_columns(table, required_columns, faults);
  while (std::optional<CsvRow> row = reader.next(faults)) {
    if (row->cells.size() != table.columns.size()) {
      faults.push_back({.field = "",
                        .what = "has " + std::to_string(row->cells.size()) +
                                " cells where the first row names " +
                                std::to_string(table.columns.size()) + " columns",
                        .line = row->line});
      continue;
    }
    table.rows.push_back(*std::move(row));
  }
  if (!faults.empty()) return csv_error(what, std::move(faults));
  return table;
}

base::Error csv_error(std::string_view what, std::vector<base::Fault> faults) {
  const std::string count = base::count_text(static_cast<int64_t>(faults.size()), "fault");
  return {.code = base::ErrorCode::kInvalid,
          .what = std::string(what) + " cannot be used: " + count,
          .advice = "mend these lines; the first row names the columns",
          .faults = std::move(faults)};
}

}  // namespace muster::simulate
