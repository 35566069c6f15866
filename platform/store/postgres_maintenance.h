// Backups, restores and checks of PostgreSQL databases; see maintenance.h.
//
// I/O, blocking.
#pragma once

#include <filesystem>
#include <string>

#include "store/maintenance.h"
#include "store/sqlite_database.h"

namespace muster::store {

/// Copies into an empty database, which gets the present schema.
Result<void> copy_out_of_postgres(const std::string& url, SqliteDatabase& copy);

/// kConflict: it is not empty, or a server leads on it. `backup_folder` as for migrate().
Result<void> copy_into_postgres(SqliteDatabase& backup, const std::string& url,
                                const std::filesystem::path& backup_folder);

Result<StoreCheck> check_postgres(const std::string& url);

/// As set_aside_record().
Result<void> set_aside_in_postgres(const std::string& url, const std::string& name, base::Time now);

}  // namespace muster::store
