#include "store/postgres_error.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

struct Meaning {
  std::string_view sqlstate;  ///< or its first characters
  ErrorCode code;
  const char* advice;
};

// https://www.postgresql.org/docs/15/errcodes-appendix.html. The first that fits counts.
constexpr Meaning kMeanings[] = {
    {"23505", ErrorCode::kConflict, ""},
    {"42P07", ErrorCode::kConflict, "give Muster a database or a schema of its own"},
    {"25006", ErrorCode::kRefused,
     "it is a standby, or was made read-only: name the primary server in the URL"},
    {"28", ErrorCode::kRefused, "see the user, its password and the server's pg_hba.conf"},
    {"42501", ErrorCode::kRefused, "make the user of the URL the owner of the database"},
    {"3D000", ErrorCode::kNotFound, "make the database first: createdb"},
    {"3F000", ErrorCode::kNotFound, "make the schema first: CREATE SCHEMA"},
    {"53300", ErrorCode::kUnavailable, "raise max_connections, or end what holds connections"},
    {"53", ErrorCode::kExhausted,
     "free some space on the database server; nothing was lost, and it goes on then"},
    {"57014", ErrorCode::kUnavailable, "the database server is slow, or a lock is held; try again"},
    {"55P03", ErrorCode::kUnavailable, "another session holds a lock; try again"},
    {"57P", ErrorCode::kUnavailable, "the database server stops or starts; try again"},
    {"08", ErrorCode::kUnavailable, "try again"},
    {"40", ErrorCode::kUnavailable, "try again"},
    {"22", ErrorCode::kInvalid, ""},
    {"XX", ErrorCode::kInternal,
     "see the database server's log; `muster store check` reads every row"},
    {"58", ErrorCode::kInternal, "see the database server's log: its disk fails"},
};

}  // namespace

Error postgres_error(const std::string& database, std::string_view sqlstate,
                     const std::string& message) {
  Error error{.code = ErrorCode::kInternal, .what = "the database " + database + ": " + message};
  for (const Meaning& meaning : kMeanings) {
    if (!sqlstate.starts_with(meaning.sqlstate)) continue;
    error.code = meaning.code;
    error.advice = meaning.advice;
    break;
  }
  return error;
}

bool ends_the_session(std::string_view sqlstate) {
  // A session keeps what it was told about writing when it began: only another one can learn that
  // the database may be written again.
  return sqlstate.starts_with("57P") || sqlstate.starts_with("08") || sqlstate == "25P03" ||
         sqlstate == "25006";
}

}  // namespace muster::store
