// A PostgreSQL server of a test program: on a unix socket in a temporary folder, ended with the
// test program however that ends.
//
// For tests. PostgreSQL refuses to run as root; then it runs as the user `postgres` or `nobody`.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster::store {

class TestPostgres {
 public:
  /// The server of this test program, started on the first call.
  static TestPostgres& instance();

  TestPostgres();
  ~TestPostgres();
  TestPostgres(const TestPostgres&) = delete;
  TestPostgres& operator=(const TestPostgres&) = delete;

  /// The URL of an empty schema that no other test uses. The users `guarded` and
  /// `rotated` need a password.
  std::string new_url();
  /// `url` over another socket: of a proxy in `folder`.
  std::string through(const std::string& url, const std::filesystem::path& folder) const;
  /// Runs SQL with psql in the schema of `url`.
  void execute(const std::string& url, const std::string& sql);

  /// The server ends with the thread that starts it: to be called on the test's main thread.
  void start();
  void stop();
  /// Crashes the server: every connection breaks, and it recovers from its log.
  void stop_at_once();

  std::filesystem::path socket() const { return folder_ / ".s.PGSQL.5432"; }

 private:
  void stop_by(int signal);
  pid_t spawn(const std::vector<std::string>& command) const;
  void run(const std::vector<std::string>& command) const;
  void wait_until_ready();

  std::filesystem::path folder_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  base::UniqueFd ready_;  ///< readable once the server is ready
  pid_t process_ = -1;
  int schemas_ = 0;
};

}  // namespace muster::store
