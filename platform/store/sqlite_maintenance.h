// Backup, restoring and checks as far as they concern a SQLite file; maintenance.h has the whole.
//
// I/O, blocking.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "store/maintenance.h"
#include "store/sqlite_database.h"

namespace muster::store {

/// How much is in it; 0 of what its version does not have yet.
Result<StoreSummary> summary_of(SqliteDatabase& database);

/// The backup `file` as a database of the present schema that goes with the connection; the file
/// stays as it is. kInvalid: it is no backup, or is damaged.
Result<SqliteDatabase> open_backup(const std::filesystem::path& file);

Result<void> copy_out_of_sqlite(const std::filesystem::path& file, SqliteDatabase& copy);

/// kConflict: it is not empty, or somebody uses it.
Result<void> copy_into_sqlite(SqliteDatabase& backup, const std::filesystem::path& file);

Result<StoreCheck> check_sqlite(const std::filesystem::path& file);

/// As set_aside_record() has it.
Result<void> set_aside_in_sqlite(const std::filesystem::path& file, const std::string& name,
                                 base::Time now);

// Which tables a summary counts, whichever the database.
//
// Pure.

using TableCount = std::pair<const char*, uint64_t*>;

/// A table, and where in `summary` its number of rows goes.
inline std::array<TableCount, 9> counts_in(StoreSummary& summary) {
  return {{{"job", &summary.jobs},
           {"project", &summary.projects},
           {"account", &summary.users},
           {"token", &summary.tokens},
           {"secret", &summary.secrets},
           {"subscription", &summary.subscriptions},
           {"delivery", &summary.deliveries},
           {"audit", &summary.audit_records},
           {"set_aside", &summary.set_aside}}};
}

}  // namespace muster::store
