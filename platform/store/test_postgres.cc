#include "store/test_postgres.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

namespace muster::store {

namespace {

const std::filesystem::path kPrograms = "/usr/lib/postgresql/15/bin";

/// A test cannot continue without its server, and an exception would not be caught.
[[noreturn]] void give_up(const std::string& what) {
  std::cerr << "the test's PostgreSQL: " << what << ": " << std::strerror(errno) << "\n";
  std::abort();
}

using LibpqConnection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

void run_sql(const std::string& url, const std::string& sql) {
  const LibpqConnection connection(PQconnectdb(url.c_str()), PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()),
                                                             PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
      << PQerrorMessage(connection.get());
}

std::string url_in(const std::filesystem::path& folder) {
  return "postgres://muster@/postgres?host=" + folder.string();
}

}  // namespace

TestPostgres& TestPostgres::instance() {
  static TestPostgres server;
  return server;
}

TestPostgres::TestPostgres() {
  std::string pattern = testing::TempDir() + "postgresXXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) give_up(pattern);
  folder_ = pattern;
  if (::geteuid() == 0) {
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) user = ::getpwnam("nobody");
    if (user == nullptr) give_up("no user to run as");
    user_ = user->pw_uid;
    group_ = user->pw_gid;
    if (::chown(folder_.c_str(), user_, group_) != 0) give_up("chown");
  }
  // The server reports to this socket, as to systemd, that it is ready.
  ready_ = base::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/ready", folder_.c_str());
  if (::bind(ready_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(address.sun_path, 0777) != 0) {
    give_up(address.sun_path);
  }
  run({kPrograms / "initdb", "--no-sync", "--auth=trust", "--username=muster", "--encoding=UTF8",
       "--locale=C.UTF-8", "--pgdata", folder_ / "data"});
  // The first matching line counts.
  std::ofstream(folder_ / "data/pg_hba.conf") << "local all guarded,rotated scram-sha-256\n"
                                              << "local all all trust\n";
  start();
}

TestPostgres::~TestPostgres() {
  if (process_ > 0) stop_by(SIGQUIT);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

pid_t TestPostgres::spawn(const std::vector<std::string>& command) const {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string log = folder_ / "log";
  const std::string notify = "NOTIFY_SOCKET=" + (folder_ / "ready").string();
  char locale[] = "LC_ALL=C.UTF-8";
  char* environment[] = {const_cast<char*>(notify.c_str()), locale, nullptr};
  const pid_t parent = ::getpid();

  const pid_t child = ::fork();
  if (child != 0) return child;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::setpgid(0, 0);  // an interrupt from the terminal is for the test only
  if (user_ != 0 && (::setgid(group_) != 0 || ::setuid(user_) != 0)) ::_exit(126);
  // The server must not outlive a test that is killed.
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (::getppid() != parent) ::_exit(125);
  ::chdir("/") == 0 ? ::execve(arguments[0], arguments.data(), environment) : 0;
  ::_exit(127);
}

void TestPostgres::run(const std::vector<std::string>& command) const {
  const pid_t child = spawn(command);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) {
    give_up(command[0] + " failed, see " + (folder_ / "log").string());
  }
}

void TestPostgres::start() {
  // Protection against a power cut is unnecessary; protection against a crash of the server is not.
  process_ = spawn({kPrograms / "postgres", "-D", folder_ / "data", "-k", folder_, "-c",
                    "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c",
                    "max_connections=30", "-c", "autovacuum=off"});
  wait_until_ready();
}

void TestPostgres::wait_until_ready() {
  char message[1024] = {};
  while (std::strstr(message, "READY=1") == nullptr) {
    pollfd waited{.fd = ready_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, 60'000) != 1) give_up("not ready, see " + (folder_ / "log").string());
    const ssize_t length = ::recv(ready_.get(), message, sizeof message - 1, 0);
    message[std::max<ssize_t>(length, 0)] = '\0';
  }
}

void TestPostgres::stop() {
  stop_by(SIGINT);
}

void TestPostgres::stop_at_once() {
  stop_by(SIGQUIT);
}

void TestPostgres::stop_by(int signal) {
  ::kill(process_, signal);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::string TestPostgres::new_url() {
  const std::string schema = "s" + std::to_string(++schemas_);
  run_sql(url_in(folder_), "CREATE SCHEMA " + schema);
  return url_in(folder_) + "&options=-csearch_path%3D" + schema;
}

std::string TestPostgres::through(const std::string& url,
                                  const std::filesystem::path& folder) const {
  std::string other = url;
  const std::string here = folder_.string();
  return other.replace(other.find(here), here.size(), folder.string());
}

void TestPostgres::execute(const std::string& url, const std::string& sql) {
  run_sql(url, sql);
}

}  // namespace muster::store
