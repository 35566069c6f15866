// The table of `muster list`: rows of jobs, arrays, sweeps and schedules, with chosen columns.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/job_rows.h"
#include "base/clock.h"
#include "base/result.h"

namespace muster::cli {

/// A column of the table: its name for --columns, and what it contains.
struct RowColumn {
  std::string_view name;
  std::string_view help;
};
const std::vector<RowColumn>& row_columns();

/// The columns of `muster list` without --columns. PROGRESS is among them if a program reports its
/// progress.
std::vector<std::string> usual_columns(const std::vector<api::JobRow>& rows);

/// "a,b,c" as names of columns. Errors: kInvalid with the unknown names.
base::Result<std::vector<std::string>> columns_of(const std::string& text);

/// A title and a line for each row. `width`: the maximum width of a line; 0: no limit.
std::string row_table(const std::vector<api::JobRow>& rows, const std::vector<std::string>& columns,
                      base::Time now, size_t width = 0);

/// The same as comma-separated values (RFC 4180), with full times. A cell that a spreadsheet would
/// take for a formula begins with an apostrophe.
std::string row_csv(const std::vector<api::JobRow>& rows, const std::vector<std::string>& columns,
                    base::Time now);

/// "40% done: 38 succeeded, 2 failed, 8 running, 52 waiting".
std::string members_words(const api::MemberCounts& members);

}  // namespace muster::cli
