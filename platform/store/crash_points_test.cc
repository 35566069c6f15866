// A process that is killed between any two commits, for every kind of record: afterwards the store
// has exactly the committed records.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/test_folder.h"
#include "store/sqlite_store.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

constexpr int kCommits = 6;

/// The content of a store, with its audit log.
struct State {
  Contents contents;
  std::vector<access::AuditRecord> audit;
};

State state_of(Store& store) {
  auto contents = store.load();
  EXPECT_TRUE(contents) << contents.error().to_string();
  auto audit = store.audit({});
  EXPECT_TRUE(audit) << audit.error().to_string();
  return {.contents = *std::move(contents), .audit = *std::move(audit)};
}

void expect_same(const State& found, const State& expected) {
  EXPECT_EQ(found.contents.jobs, expected.contents.jobs);
  EXPECT_EQ(found.contents.objects, expected.contents.objects);
  EXPECT_EQ(found.contents.projects, expected.contents.projects);
  EXPECT_EQ(found.contents.cordoned_nodes, expected.contents.cordoned_nodes);
  EXPECT_EQ(found.contents.users, expected.contents.users);
  EXPECT_EQ(found.contents.tokens, expected.contents.tokens);
  EXPECT_EQ(found.contents.secrets, expected.contents.secrets);
  EXPECT_EQ(found.audit, expected.audit);
}

/// The n-th commit for one kind of record: the first ones add, later ones change and remove. Values
/// that a batch points to live as long as the program.
struct KindOfRecord {
  const char* name;
  Batch (*commit)(int n);
};

std::string numbered(const char* word, int n) {
  return word + std::to_string(n);
}

job::Job* lasting(job::Job job) {
  static std::vector<std::unique_ptr<job::Job>> jobs;
  jobs.push_back(std::make_unique<job::Job>(std::move(job)));
  return jobs.back().get();
}

Batch commit_job(int n) {
  if (n < 3) {
    return {.new_jobs = {{.job = lasting(full_job(numbered("j", n), numbered("n", n))),
                          .idempotency_key = numbered("k", n)}}};
  }
  if (n == 5) return {.removed_jobs = {"j0", "j1"}};
  job::Job* changed = lasting(full_job(numbered("j", n - 3), numbered("n", n - 3)));
  changed->attempt = n;
  return {.changed_jobs = {changed}};
}

Batch commit_object(int n) {
  if (n == 5) return {.removed_objects = {{.kind = "array", .id = "a0"}}};
  Object object = full_object("array", numbered("a", n % 3), numbered("n", n % 3));
  object.document = numbered("after ", n);
  return {.objects = {object}};
}

Batch commit_project(int n) {
  if (n == 5) return {.removed_projects = {"p0", "p1"}};
  return {.projects = {full_project(numbered("p", n % 3), static_cast<uint64_t>(n))}};
}

Batch commit_node(int n) {
  if (n < 3) return {.cordoned_nodes = {numbered("n", n), numbered("m", n)}};
  return {.uncordoned_nodes = {numbered("n", n - 3), numbered("m", n - 3)}};
}

Batch commit_user(int n) {
  if (n == 5) return {.removed_users = {"u0", "u1"}};
  access::User user = full_user(numbered("u", n % 3));
  user.disabled = n < 3;
  return {.users = {user}};
}

Batch commit_token(int n) {
  if (n == 5) return {.removed_tokens = {"t0", "t1"}};
  access::Token token = full_token(numbered("t", n % 3));
  token.description = numbered("after ", n);
  return {.tokens = {token}};
}

Batch commit_secret(int n) {
  if (n == 5) return {.removed_secrets = {{.project = "lab", .name = "S0"}}};
  access::Secret secret = full_secret("lab", numbered("S", n % 3));
  secret.sealed = numbered("after ", n);
  return {.secrets = {secret}};
}

Batch commit_audit(int n) {
  const auto number = static_cast<uint64_t>(n);
  return {.audit = {full_record(2 * number + 1), full_record(2 * number + 2)}};
}

Batch commit_everything(int n) {
  Batch all = commit_job(n);
  all.objects = commit_object(n).objects;
  all.removed_objects = commit_object(n).removed_objects;
  all.projects = commit_project(n).projects;
  all.cordoned_nodes = commit_node(n).cordoned_nodes;
  all.users = commit_user(n).users;
  all.tokens = commit_token(n).tokens;
  all.removed_secrets = commit_secret(n).removed_secrets;
  all.secrets = commit_secret(n).secrets;
  all.audit = commit_audit(n).audit;
  return all;
}

/// The number of commits that SQLite may begin before the process kills itself.
int commits_to_begin = -1;

int kill_at_commit(void* /*nothing*/) {
  if (--commits_to_begin == 0) ::raise(SIGKILL);
  return 0;
}

int watch_commits(sqlite3* database, const char** /*error*/, const void* /*routines*/) {
  sqlite3_commit_hook(database, kill_at_commit, nullptr);
  return SQLITE_OK;
}

/// In a process of its own: opens the store, commits, and is killed: right after `whole` commits,
/// or when the next one has written everything but is not yet effective.
void run_until_killed(const std::filesystem::path& file, const KindOfRecord& kind, int whole,
                      bool within_next) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = SqliteStore::open(file);
    for (int n = 0; store && n < kCommits; ++n) {
      if (n == whole && !within_next) ::raise(SIGKILL);
      if (n == whole) commits_to_begin = 1;
      if (!(*store)->commit(kind.commit(n))) break;
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

class CrashPoints : public testing::TestWithParam<KindOfRecord> {
 protected:
  CrashPoints() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(watch_commits)); }
  ~CrashPoints() override { sqlite3_reset_auto_extension(); }

  /// The state after the first `count` commits without a kill.
  State after(int count) const {
    auto store = SqliteStore::open(folder_ / ("whole" + std::to_string(count) + ".db"));
    for (int n = 0; n < count; ++n) EXPECT_TRUE((*store)->commit(GetParam().commit(n)));
    return state_of(**store);
  }

  const base::TestFolder folder_;
};

TEST_P(CrashPoints, LeaveExactlyTheCommittedRecords) {
  const State in_the_end = after(kCommits);
  for (int whole = 0; whole < kCommits; ++whole) {
    const State expected = after(whole);
    for (const bool within_next : {false, true}) {
      SCOPED_TRACE(std::to_string(whole) + (within_next ? " and the next begun" : ""));
      const std::filesystem::path file =
          folder_ / (std::to_string(whole) + (within_next ? "b.db" : "a.db"));

      run_until_killed(file, GetParam(), whole, within_next);

      const auto store = SqliteStore::open(file);
      ASSERT_TRUE(store) << store.error().to_string();
      expect_same(state_of(**store), expected);
      // After the kill, the commits that were not reported as done can be repeated.
      for (int n = whole; n < kCommits; ++n) {
        const auto done = (*store)->commit(GetParam().commit(n));
        ASSERT_TRUE(done) << done.error().to_string();
      }
      expect_same(state_of(**store), in_the_end);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CrashPoints,
    testing::Values(KindOfRecord{"Job", commit_job}, KindOfRecord{"Object", commit_object},
                    KindOfRecord{"Project", commit_project}, KindOfRecord{"Node", commit_node},
                    KindOfRecord{"User", commit_user}, KindOfRecord{"Token", commit_token},
                    KindOfRecord{"Secret", commit_secret}, KindOfRecord{"Audit", commit_audit},
                    KindOfRecord{"Everything", commit_everything}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace muster::store
