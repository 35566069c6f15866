// A PostgreSQL server of a test's own: on a unix socket in a temporary folder, gone with the test
// program however that ends.
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
  /// The one of this test program, made when it is first asked for.
  static TestPostgres& instance();

  TestPostgres();
  ~TestPostgres();
  TestPostgres(const TestPostgres&) = delete;
  TestPostgres& operator=(const TestPostgres&) = delete;

  /// Of an empty schema that nobody else uses. The user `guarded`, once made, needs a password.
  std::string new_url();
  /// `url` by way of another socket: of a proxy in `folder`.
  std::string through(const std::string& url, const std::filesystem::path& folder) const;
  /// SQL by PostgreSQL's own means, in the schema of `url`.
  void execute(const std::string& url, const std::string& sql);

  /// The server ends with the thread that starts it: call this from the test's own.
  void start();
  void stop();
  /// As after a crash: every connection breaks, and it recovers from its log.
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
  base::UniqueFd ready_;  ///< where the server tells that it is ready
  pid_t process_ = -1;
  int schemas_ = 0;
};

}  // namespace muster::store
