// Backups, restores and checks of SQLite files, and counts of records; see maintenance.h.
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

/// The number of records; 0 for tables that its version does not have.
Result<StoreSummary> summary_of(SqliteDatabase& database);

/// The backup `file` as a database of the present schema in memory; the file is not changed.
/// kInvalid: it is not a backup, or is damaged.
Result<SqliteDatabase> open_backup(const std::filesystem::path& file);

Result<void> copy_out_of_sqlite(const std::filesystem::path& file, SqliteDatabase& copy);

/// kConflict: it is not empty, or is in use.
Result<void> copy_into_sqlite(SqliteDatabase& backup, const std::filesystem::path& file);

Result<StoreCheck> check_sqlite(const std::filesystem::path& file);

/// As set_aside_record().
Result<void> set_aside_in_sqlite(const std::filesystem::path& file, const std::string& name,
                                 base::Time now);

using TableCount = std::pair<const char*, uint64_t*>;

/// A table, and the field of a summary that counts its rows.
inline std::array<TableCount, 10> counts_in(StoreSummary& summary) {
  return {{{"job", &summary.jobs},
           {"object", &summary.objects},
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
