#include "store/postgres_connection.h"

#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "store/postgres_library.h"
#include "store/postgres_store.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

constexpr int kBinary = 1;

void ignore_notice(void* /*argument*/, const char* /*notice*/) {}

/// The message in one line: libpq's messages may have several.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    text.replace(at, 1, "; ");
  }
  return text;
}

std::string login_advice(const PostgresUrl& url) {
  const std::string password =
      url.password_source.read
          ? "the user of the URL, the password in '" + url.password_source.file +
                "' (store_password_file; it is read for each connection)"
          : "the user and the password of the URL (or in store_password_file)";
  return "check " + password + ", and the server's pg_hba.conf";
}

std::string sqlstate_of(const PGresult* result) {
  const char* state = libpq().PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? "" : state;
}

}  // namespace

void PostgresRows::Clear::operator()(pg_result* result) const {
  libpq().PQclear(result);
}

int PostgresRows::size() const {
  return libpq().PQntuples(result_.get());
}

int PostgresRows::columns() const {
  return libpq().PQnfields(result_.get());
}

std::string_view PostgresRows::bytes(int row, int column) const {
  return {libpq().PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(libpq().PQgetlength(result_.get(), row, column))};
}

int64_t PostgresRows::number(int row, int column) const {
  uint64_t number = 0;
  for (const char byte : bytes(row, column)) {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return static_cast<int64_t>(number);
}

bool PostgresRows::is_null(int row, int column) const {
  return libpq().PQgetisnull(result_.get(), row, column) == 1;
}

bool PostgresRows::is_number(int column) const {
  constexpr Oid kInt8 = 20;
  return libpq().PQftype(result_.get(), column) == kInt8;
}

RecordRow PostgresRows::record(int row, size_t key_size) const {
  RecordRow result;
  const auto document = static_cast<int>(key_size);
  for (int column = 0; column < document; ++column) result.key.push_back(bytes(row, column));
  result.document = bytes(row, document);
  result.checksum = number(row, document + 1);
  if (libpq().PQnfields(result_.get()) > document + 2) result.facts = bytes(row, document + 2);
  return result;
}

int64_t PostgresRows::changed() const {
  return std::atoll(libpq().PQcmdTuples(result_.get()));
}

void PostgresConnection::Finish::operator()(pg_conn* connection) const {
  libpq().PQfinish(connection);
}

PostgresConnection::PostgresConnection(PostgresUrl url, pg_conn* connection,
                                       const Timeouts& timeouts)
    : url_(std::move(url)), connection_(connection), timeouts_(timeouts) {}
PostgresConnection::~PostgresConnection() = default;

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(const PostgresUrl& given,
                                                                     const std::string& name,
                                                                     const Timeouts& timeouts) {
  MUSTER_TRY(const PostgresUrl url, given.with_present_password());
  const std::string patience = std::to_string(timeouts.connect.count());
  // Later options win: options before the URL are defaults, options after it override the URL.
  const std::pair<const char*, const char*> options[] = {
      {"connect_timeout", patience.c_str()}, {"keepalives_idle", "3"},
      {"keepalives_interval", "1"},          {"keepalives_count", "3"},
      {"tcp_user_timeout", "5000"},          {"dbname", url.text.c_str()},
      {"password", url.password.c_str()},    {"application_name", name.c_str()},
      {"client_encoding", "UTF8"},           {nullptr, nullptr}};
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : options) {
    keywords.push_back(keyword);
    values.push_back(value);
  }
  std::unique_ptr<PostgresConnection> opened(new PostgresConnection(
      url, libpq().PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/1),
      timeouts));
  PGconn* connection = opened->connection_.get();
  if (libpq().PQstatus(connection) != CONNECTION_OK) {
    // A failed attempt has no SQLSTATE, only text; messages of the server begin with a severity.
    const std::string message = one_line(libpq().PQerrorMessage(connection));
    const bool by_server = message.find("FATAL: ") != std::string::npos;
    const std::string shown = url.without_password(message);
    const bool by_login = message.find("authentication failed") != std::string::npos ||
                          message.find("pg_hba.conf") != std::string::npos;
    if (by_server && by_login) {
      return Error{.code = ErrorCode::kRefused,
                   .what = "the database " + url.shown + " refuses the login: " + shown,
                   .advice = login_advice(url)};
    }
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "the database " + url.shown + " cannot be reached: " + shown,
                 .advice = "check that the database server runs and that the URL is correct"};
  }
  libpq().PQsetNoticeProcessor(connection, ignore_notice, nullptr);
  libpq().PQsetnonblocking(connection, 1);
  MUSTER_CHECK(opened->set_up());
  return opened;
}

Result<void> PostgresConnection::set_up() {
  // Every statement that is run often finds its rows by an index, whatever the values are: so it is
  // planned once. The plan stays when a table of one page has grown to a million rows, which a scan
  // would read for each job. In the order of an index, all jobs are read without being sorted on
  // disk. And no statement runs long enough to be worth compiling.
  //
  // The server's keepalives: it should notice within seconds that a leader has lost power, because
  // the session and its lock exist until then. They have no effect on a unix socket.
  return execute(
      "SELECT set_config('synchronous_commit', 'on', false)"
      "  WHERE current_setting('synchronous_commit') = 'off';"
      "SET statement_timeout = " +
      std::to_string(timeouts_.statement.count()) +
      ";"
      "SET lock_timeout = " +
      std::to_string(timeouts_.statement.count() / 2) +
      ";"
      "SET idle_in_transaction_session_timeout = 30000;"
      "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off;"
      "SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;"
      "SET tcp_user_timeout = 4000; SET client_min_messages = error");
}

bool PostgresConnection::is_broken() const {
  return is_broken_ || libpq().PQstatus(connection_.get()) != CONNECTION_OK;
}

Error PostgresConnection::lost() {
  is_broken_ = true;
  if (was_silent_) {
    return {.code = ErrorCode::kUnavailable,
            .what = "the database " + url_.shown + " did not answer within " +
                    std::to_string(timeouts_.silence.count() / 1000) + " s",
            .advice = "check the database server; the next request tries again"};
  }
  return {.code = ErrorCode::kUnavailable,
          .what = "the connection to the database " + url_.shown + " was lost: " +
                  url_.without_password(one_line(libpq().PQerrorMessage(connection_.get()))),
          .advice = "check that the database server runs; the next request tries again"};
}

Error PostgresConnection::error(const PGresult* result) {
  const std::string state = sqlstate_of(result);
  if (ends_the_session(state)) is_broken_ = true;
  const char* message = libpq().PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return postgres_error(url_.shown, state,
                        url_.without_password(one_line(message == nullptr ? "" : message)));
}

Error PostgresConnection::lost_or(const PGresult* result) {
  if (sqlstate_of(result).empty()) return lost();
  return error(result);
}

/// False: the connection is lost, or was silent for too long.
bool PostgresConnection::wait_readable() {
  const int unsent = libpq().PQflush(connection_.get());
  if (unsent < 0) return false;
  pollfd waited{.fd = libpq().PQsocket(connection_.get()),
                .events = static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN),
                .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&waited, 1, static_cast<int>(timeouts_.silence.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) was_silent_ = true;
  if (ready <= 0) return false;
  return (waited.revents & ~POLLOUT) == 0 || libpq().PQconsumeInput(connection_.get()) == 1;
}

PGresult* PostgresConnection::next_result() {
  while (!is_broken_ && libpq().PQisBusy(connection_.get()) == 1) {
    if (!wait_readable()) is_broken_ = true;
  }
  // For a silent server, libpq would wait.
  return was_silent_ ? nullptr : libpq().PQgetResult(connection_.get());
}

/// The last answer to a statement; an error if any answer is one.
Result<PostgresRows> PostgresConnection::last_of_statement() {
  std::unique_ptr<PGresult, decltype(libpq().PQclear)> last(nullptr, libpq().PQclear);
  bool has_failed = false;
  while (PGresult* result = next_result()) {
    const ExecStatusType status = libpq().PQresultStatus(result);
    if (has_failed) {
      libpq().PQclear(result);
      continue;
    }
    last.reset(result);
    has_failed = status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
  }
  if (!last) return lost();
  if (has_failed) return lost_or(last.get());
  return PostgresRows(last.release());
}

Result<void> PostgresConnection::execute(const std::string& sql) {
  if (is_broken() || libpq().PQsendQuery(connection_.get(), sql.c_str()) != 1) return lost();
  const Result<PostgresRows> done = last_of_statement();
  if (!done) return done.error();
  return {};
}

bool PostgresConnection::send(const PostgresStep& step) {
  const PostgresParameters& parameters = step.parameters;
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (size_t i = 0; i < parameters.size(); ++i) {
    values.push_back(parameters.data(i));
    lengths.push_back(parameters.length(i));
  }
  const std::vector<int> formats(parameters.size(), kBinary);
  const auto count = static_cast<int>(parameters.size());
  PGconn* connection = connection_.get();
  return (step.is_prepared
              ? libpq().PQsendQueryPrepared(connection, step.statement.c_str(), count,
                                            values.data(), lengths.data(), formats.data(), kBinary)
              : libpq().PQsendQueryParams(connection, step.statement.c_str(), count, nullptr,
                                          values.data(), lengths.data(), formats.data(),
                                          kBinary)) == 1;
}

Result<PostgresRows> PostgresConnection::query(const std::string& sql,
                                               const PostgresParameters& parameters) {
  if (is_broken() || !send({.statement = sql, .parameters = parameters, .is_prepared = false})) {
    return lost();
  }
  return last_of_statement();
}

Result<void> PostgresConnection::each_row(const std::string& sql, const Take& take) {
  if (is_broken() || !send({.statement = sql, .parameters = {}, .is_prepared = false})) {
    return lost();
  }
  libpq().PQsetSingleRowMode(connection_.get());
  // After an error the remaining answers are read: the connection stays usable.
  Result<void> done;
  bool is_complete = false;
  while (PGresult* result = next_result()) {
    const ExecStatusType status = libpq().PQresultStatus(result);
    const PostgresRows row(result);
    is_complete = is_complete || status == PGRES_TUPLES_OK;
    if (!done || status == PGRES_TUPLES_OK) continue;
    done = status == PGRES_SINGLE_TUPLE ? take(row) : Result<void>(lost_or(result));
  }
  if (done && !is_complete) return lost();
  return done;
}

Result<void> PostgresConnection::prepare(std::span<const Prepared> statements) {
  for (const Prepared& statement : statements) {
    if (is_broken() || libpq().PQsendPrepare(connection_.get(), statement.name.c_str(),
                                             statement.sql.c_str(), 0, nullptr) != 1) {
      return lost();
    }
    const Result<PostgresRows> done = last_of_statement();
    if (!done) return done.error();
  }
  return {};
}

Result<std::vector<PostgresRows>> PostgresConnection::pipeline(std::span<const PostgresStep> steps,
                                                               size_t* failed) {
  PGconn* connection = connection_.get();
  if (is_broken() || libpq().PQenterPipelineMode(connection) != 1) return lost();
  for (const PostgresStep& step : steps) {
    if (!send(step)) return lost();
  }
  if (libpq().PQpipelineSync(connection) != 1) return lost();

  std::vector<PostgresRows> answers;
  answers.reserve(steps.size());
  std::optional<Error> first_error;
  while (true) {
    PGresult* result = next_result();
    if (result == nullptr) {  // between two statements, or lost
      if (is_broken()) break;
      continue;
    }
    PostgresRows rows(result);
    const ExecStatusType status = libpq().PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) break;
    if (first_error) continue;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      answers.push_back(std::move(rows));
      continue;
    }
    if (failed != nullptr) *failed = answers.size();
    first_error = lost_or(result);
  }
  if (first_error) {
    if (!is_broken()) libpq().PQexitPipelineMode(connection);
    return *std::move(first_error);
  }
  if (is_broken()) return lost();
  libpq().PQexitPipelineMode(connection);
  return answers;
}

namespace {

std::string parameter_value(const PQconninfoOption* options, std::string_view keyword) {
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (keyword == option->keyword) return option->val == nullptr ? "" : option->val;
  }
  return {};
}

std::string shown(const PQconninfoOption* options) {
  const auto with = [&](const char* before, const char* keyword, const char* after) {
    const std::string value = parameter_value(options, keyword);
    return value.empty() ? value : before + value + after;
  };
  return "postgres://" + with("", "user", "@") + with("", "host", "") + with(":", "port", "") +
         with("/", "dbname", "");
}

}  // namespace

bool is_postgres_url(const std::string& where) {
  return where.starts_with("postgres://") || where.starts_with("postgresql://");
}

base::Result<PostgresUrl> PostgresUrl::parse(const std::string& text) {
  MUSTER_CHECK(load_libpq());
  char* complaint = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(libpq().PQconninfoFree)> options(
      is_postgres_url(text) ? libpq().PQconninfoParse(text.c_str(), &complaint) : nullptr,
      libpq().PQconninfoFree);
  libpq().PQfreemem(complaint);
  if (!options) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "the URL of the store is invalid",
                       .advice =
                           "give postgres://USER@HOST/DATABASE; in a name or a password, write "
                           "'@', '/' and '%' as %40, %2F and %25"};
  }
  return PostgresUrl{.text = text,
                     .shown = store::shown(options.get()),
                     .password = parameter_value(options.get(), "password")};
}

std::string PostgresUrl::without_password(std::string message) const {
  if (password.empty()) return message;
  const std::string_view blot = "(password)";
  for (size_t at = message.find(password); at != std::string::npos;
       at = message.find(password, at + blot.size())) {
    message.replace(at, password.size(), blot);
  }
  return message;
}

base::Result<PostgresUrl> PostgresUrl::with_present_password() const {
  PostgresUrl url = *this;
  if (!password_source.read) return url;
  auto present = password_source.read();
  if (present) {
    url.password = *std::move(present);
    return url;
  }
  Error error = std::move(present).error();
  error.code = ErrorCode::kUnavailable;  // the file may be about to be replaced
  error.what = "the database " + shown + " cannot be reached without its password: " + error.what;
  return error;
}

namespace {

struct Meaning {
  std::string_view sqlstate;  ///< or its first characters
  ErrorCode code;
  const char* advice;
};

// https://www.postgresql.org/docs/15/errcodes-appendix.html. The first that fits counts.
constexpr Meaning kMeanings[] = {
    {"23505", ErrorCode::kConflict, ""},
    {"42P07", ErrorCode::kConflict, "use a separate database or schema for Muster"},
    {"25006", ErrorCode::kRefused,
     "it is a standby, or was made read-only: give the primary server in the URL"},
    {"28", ErrorCode::kRefused, "check the user, its password and the server's pg_hba.conf"},
    {"42501", ErrorCode::kRefused, "make the user of the URL the owner of the database"},
    {"3D000", ErrorCode::kNotFound, "create the database first: createdb"},
    {"3F000", ErrorCode::kNotFound, "create the schema first: CREATE SCHEMA"},
    {"53300", ErrorCode::kUnavailable, "raise max_connections, or close other connections"},
    {"53", ErrorCode::kExhausted,
     "free disk space on the database server; until then Muster stores no changes, and keeps all "
     "earlier ones"},
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
  // A session keeps the read-only setting of its beginning: only a new session notices that the
  // database is writable again.
  return sqlstate.starts_with("57P") || sqlstate.starts_with("08") || sqlstate == "25P03" ||
         sqlstate == "25006";
}

}  // namespace muster::store
