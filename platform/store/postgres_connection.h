// A session with a PostgreSQL server: the parts of libpq that the store uses, with a timeout for
// every answer, and with errors that give advice and contain no password.
//
// Threads: one at a time. A broken connection stays broken; its owner opens another.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "store/records.h"
#include "store/store.h"

struct pg_conn;
struct pg_result;

namespace muster::store {

using base::Result;

/// The parameters of one statement in PostgreSQL's binary format, without quoting. The server
/// infers the types from the statement: a text and a bytea have the same bytes.
class PostgresParameters {
 public:
  PostgresParameters& bytes(std::string_view bytes) {
    values_.push_back({.bytes = std::string(bytes)});
    return *this;
  }
  PostgresParameters& text(std::string_view utf8) { return bytes(utf8); }
  PostgresParameters& number(int64_t value) { return bytes(big_endian(value, 8)); }
  PostgresParameters& null() {
    values_.push_back({.is_null = true});
    return *this;
  }
  PostgresParameters& texts(const std::vector<std::string>& texts) {
    return bytes(array(kTextOid, texts));
  }
  PostgresParameters& byteas(const std::vector<std::string>& values) {
    return bytes(array(kByteaOid, values));
  }
  PostgresParameters& numbers(const std::vector<int64_t>& numbers) {
    std::vector<std::string> values;
    for (const int64_t number : numbers) values.push_back(big_endian(number, 8));
    return bytes(array(kInt8Oid, values));
  }

  size_t size() const { return values_.size(); }
  /// nullptr: NULL.
  const char* data(size_t i) const {
    return values_[i].is_null ? nullptr : values_[i].bytes.data();
  }
  int length(size_t i) const { return static_cast<int>(values_[i].bytes.size()); }

 private:
  struct Value {
    std::string bytes;
    bool is_null = false;
  };

  static constexpr int64_t kByteaOid = 17;
  static constexpr int64_t kInt8Oid = 20;
  static constexpr int64_t kTextOid = 25;

  /// Dimensions, has no NULL, type of the elements, length, lower bound; then each element with its
  /// length.
  static std::string array(int64_t type, const std::vector<std::string>& elements) {
    std::string array =
        big_endian(elements.empty() ? 0 : 1, 4) + big_endian(0, 4) + big_endian(type, 4);
    if (!elements.empty()) {
      array += big_endian(static_cast<int64_t>(elements.size()), 4) + big_endian(1, 4);
    }
    for (const std::string& element : elements) {
      array += big_endian(static_cast<int64_t>(element.size()), 4) + element;
    }
    return array;
  }

  static std::string big_endian(int64_t value, int bytes) {
    std::string result;
    while (bytes-- > 0) result += static_cast<char>(static_cast<uint64_t>(value) >> (8 * bytes));
    return result;
  }

  std::vector<Value> values_;
};

/// The address of a PostgreSQL database, as libpq takes it and as messages may show it.
struct PostgresUrl {
  std::string text;      ///< as given; may contain the password
  std::string shown;     ///< "postgres://ada@host:5432/muster": without password and options
  std::string password;  ///< removed from the messages of other programs
  PasswordSource password_source = {};  ///< if it has a function, replaces `password`

  /// Loads libpq, which reads its PG* variables for defaults.
  /// Errors: kInvalid; kUnavailable without libpq. The error repeats no part of the URL, because
  /// any part may be the password.
  static base::Result<PostgresUrl> parse(const std::string& text);

  /// `message` with every occurrence of the password replaced.
  std::string without_password(std::string message) const;

  /// With the password that a connection needs now. kUnavailable: its source cannot be read now.
  base::Result<PostgresUrl> with_present_password() const;
};

/// The error for a SQLSTATE. `database` is PostgresUrl::shown, `message` the server's text.
base::Error postgres_error(const std::string& database, std::string_view sqlstate,
                           const std::string& message);

/// Whether the server ends the session after an error with this SQLSTATE.
bool ends_the_session(std::string_view sqlstate);

/// The rows of an answer, with columns in binary format.
class PostgresRows {
 public:
  explicit PostgresRows(pg_result* result) : result_(result) {}

  int size() const;
  int columns() const;
  std::string_view bytes(int row, int column) const;
  int64_t number(int row, int column) const;  ///< of an int8
  bool is_null(int row, int column) const;
  bool is_number(int column) const;
  /// The record of a row that begins with the columns of RecordKind::query(): `key_size` texts, the
  /// document and the checksum.
  RecordRow record(int row, size_t key_size) const;
  /// How many rows an INSERT, UPDATE or DELETE changed.
  int64_t changed() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// A statement in a pipeline.
struct PostgresStep {
  std::string statement;  ///< the name of a prepared statement, or SQL
  PostgresParameters parameters;
  bool is_prepared = true;
};

class PostgresConnection {
 public:
  struct Timeouts {
    std::chrono::seconds connect{3};
    std::chrono::milliseconds statement{5'000};  ///< the server gives up on a statement
    /// This side gives up on the server; negative: never.
    std::chrono::milliseconds silence{8'000};
  };

  /// kUnavailable: no answer. kRefused: the server rejects this user. kNotFound: the server has no
  /// such database. `name`: of the session in the server's list.
  static Result<std::unique_ptr<PostgresConnection>> open(const PostgresUrl& url,
                                                          const std::string& name,
                                                          const Timeouts& timeouts);
  static Result<std::unique_ptr<PostgresConnection>> open(const PostgresUrl& url,
                                                          const std::string& name) {
    return open(url, name, Timeouts());
  }
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  /// Runs statements without parameters and rows, separated by ';'.
  Result<void> execute(const std::string& sql);
  Result<PostgresRows> query(const std::string& sql, const PostgresParameters& parameters = {});
  /// Passes on each row as it arrives: only one is in memory.
  using Take = std::function<Result<void>(const PostgresRows& one)>;
  Result<void> each_row(const std::string& sql, const Take& take);

  struct Prepared {
    std::string name;
    std::string sql;
  };
  Result<void> prepare(std::span<const Prepared> statements);

  /// Runs all steps in one round trip, and returns the answers in order. After a failed step the
  /// others are not run, and `*failed` is its index.
  Result<std::vector<PostgresRows>> pipeline(std::span<const PostgresStep> steps,
                                             size_t* failed = nullptr);

  /// Sets how long this side waits for an answer; negative: without a limit. Returns the earlier
  /// value.
  std::chrono::milliseconds set_silence(std::chrono::milliseconds silence) {
    return std::exchange(timeouts_.silence, silence);
  }

  /// Whether the connection was lost: no later call succeeds.
  bool is_broken() const;
  const PostgresUrl& url() const { return url_; }

 private:
  PostgresConnection(PostgresUrl url, pg_conn* connection, const Timeouts& timeouts);
  Result<void> set_up();
  bool send(const PostgresStep& step);
  /// The next answer; nullptr: the end of the answers to one statement.
  pg_result* next_result();
  bool wait_readable();
  Result<PostgresRows> last_of_statement();
  base::Error error(const pg_result* result);
  base::Error lost();
  base::Error lost_or(const pg_result* result);

  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  PostgresUrl url_;
  std::unique_ptr<pg_conn, Finish> connection_;
  Timeouts timeouts_;
  bool is_broken_ = false;
  bool was_silent_ = false;
};

}  // namespace muster::store
