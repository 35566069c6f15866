// Tables of comma-separated values, read whole: the first row names the columns, order does not
// matter, columns that nobody asks for are ignored. Every fault is found in one go, with its line.
//
//   MUSTER_TRY(CsvTable table, parse_csv(text, "the node list", {"sn", "gpu"}));
//   std::vector<base::Fault> faults;
//   for (const CsvRow& row : table.rows)
//     use(table.text(row, "sn"), table.whole(row, "gpu", {.most = 64}, faults));
//   if (!faults.empty()) return csv_error("the node list", std::move(faults));
//
// Quotes are those of RFC 4180: "a ""quoted"" cell, with a comma". Pure: text in, values out.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::simulate {

struct CsvRow {
  int line = 0;                    ///< where it begins; the first line of the file is 1
  std::vector<std::string> cells;  ///< as many as there are columns

  bool operator==(const CsvRow&) const = default;
};

/// What a number may be.
struct CsvRange {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  bool has(std::string_view column) const;
  /// Without the blanks around it; empty where there is no such column.
  std::string_view text(const CsvRow& row, std::string_view column) const;
  /// Where it is no number, or out of range: a fault, and `range.least`. An empty cell is no
  /// number.
  int64_t whole(const CsvRow& row, std::string_view column, CsvRange range,
                std::vector<base::Fault>& faults) const;
  /// The same for a number with a fraction: finite, and not negative.
  double decimal(const CsvRow& row, std::string_view column,
                 std::vector<base::Fault>& faults) const;
};

/// Empty lines are skipped; a byte order mark and carriage returns at line ends are taken off.
/// `what` names the file in the error: "the node list".
///
/// Errors: kInvalid, with every missing column, every row that has too few or too many cells, and
/// a quote that is never closed.
base::Result<CsvTable> parse_csv(std::string_view text, std::string_view what,
                                 const std::vector<std::string>& required_columns);

/// "the node list cannot be used: 3 faults", with the faults.
base::Error csv_error(std::string_view what, std::vector<base::Fault> faults);

}  // namespace muster::simulate
