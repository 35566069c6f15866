#include "service/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"
#include "config/paths.h"
#include "store/memory_store.h"

namespace muster::service {
namespace {

const config::Paths kPaths{.state_folder = "/state", .socket = "/run/muster.sock"};

TEST(StorePlace, IsTheDatabaseOfTheStateFolderByDefault) {
  config::ServeOptions options;
  EXPECT_EQ(*store_place(options, kPaths), "/state/muster.db");
  options.store = "/srv/a.db";
  EXPECT_EQ(*store_place(options, kPaths), "/srv/a.db");
  options.store = "postgres://muster@db/m";
  EXPECT_EQ(*store_place(options, kPaths), "postgres://muster@db/m");
}

TEST(StorePlace, AddsThePasswordOfAPrivateFile) {
  const base::TestFolder folder;
  config::ServeOptions options{.store = "postgres://muster@db/m?sslmode=require",
                               .store_password_file = folder / "password"};
  ASSERT_TRUE(base::write_file(folder / "password", "p&w 1\nnot this\n"));
  EXPECT_EQ(*store_place(options, kPaths),
            "postgres://muster@db/m?sslmode=require&password=p%26w%201");

  ASSERT_EQ(::chmod((folder / "password").c_str(), 0644), 0);
  EXPECT_EQ(store_place(options, kPaths).error().code, base::ErrorCode::kRefused);
  ASSERT_TRUE(base::write_file(folder / "password", "\n"));
  EXPECT_NE(store_place(options, kPaths).error().what.find("no password"), std::string::npos);
}

TEST(StorePassword, IsReadFromTheFileEachTime) {
  const base::TestFolder folder;
  const std::filesystem::path file = folder / "password";
  const auto source =
      store_password({.store = "postgres://muster@db/m", .store_password_file = file});
  EXPECT_EQ(source.file, file.string());
  EXPECT_FALSE(source.read());

  for (const std::string word : {"sesame", "mellon"}) {
    ASSERT_TRUE(base::write_file(file, word + "\n"));
    EXPECT_EQ(*source.read(), word);
  }
  EXPECT_FALSE(store_password({.store = "postgres://muster@db/m"}).read);
}

TEST(EmptiedDatabase, IsRefusedAfterAServerHasUsedTheFolder) {
  const base::TestFolder folder;
  const std::string database = folder / "muster.db";
  const std::string trace = folder / "leader.lock";
  EXPECT_TRUE(refuse_emptied_database(database, trace)) << "the first start";
  ASSERT_TRUE(base::write_file(database, ""));
  EXPECT_TRUE(refuse_emptied_database(database, trace)) << "the first start, on a full disk";
  ASSERT_TRUE(base::write_file(trace, ""));

  const auto refused = refuse_emptied_database(database, trace);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kConflict);
  EXPECT_NE(refused.error().what.find("is empty (0 bytes)"), std::string::npos);
  EXPECT_TRUE(refuse_emptied_database("postgres://muster@db/m", trace));
  ASSERT_TRUE(base::write_file(database, "SQLite format 3"));
  EXPECT_TRUE(refuse_emptied_database(database, trace));
}

TEST(RetentionRules, AreEmptyByDefault) {
  EXPECT_EQ(retention_rules({}), control::RetentionRules());
  const control::RetentionRules rules{
      .keep_for = std::chrono::hours(1), .keep_jobs = 0, .keep_bytes = 5000};
  EXPECT_EQ(retention_rules({.keep_jobs_for = rules.keep_for,
                             .keep_jobs = rules.keep_jobs,
                             .keep_bytes = rules.keep_bytes}),
            rules);
}

TEST(OwnAddress, IsReachableForCallers) {
  config::ServeOptions options;
  EXPECT_EQ(own_address(options, "host", "", kPaths), "host:/run/muster.sock");
  EXPECT_EQ(own_address(options, "host", "0.0.0.0:7443", kPaths), "host:7443");
  EXPECT_EQ(own_address(options, "host", "[::]:7443", kPaths), "host:7443");
  EXPECT_EQ(own_address(options, "host", "10.0.0.7:7443", kPaths), "10.0.0.7:7443");
  options.advertise = "muster-1:443";
  EXPECT_EQ(own_address(options, "host", "0.0.0.0:7443", kPaths), "muster-1:443");
}

TEST(HttpLimits, AreThoseOfTheConfigurationInWholeSeconds) {
  config::ServeOptions options;
  options.body_bytes = 1 << 20;
  options.connections = 7;
  options.request_timeout = std::chrono::milliseconds(1500);
  const http::Limits limits = http_limits(options);
  EXPECT_EQ(limits.body_bytes, size_t{1} << 20);
  EXPECT_EQ(limits.connections, 7U);
  EXPECT_EQ(limits.request_timeout, std::chrono::seconds(2));
}

TEST(Defaults, OfTheConfigurationEqualThoseOfTheParts) {
  const config::ServeOptions options;
  const http::Limits limits = http_limits(options);
  EXPECT_EQ(limits.body_bytes, http::Limits().body_bytes);
  EXPECT_EQ(limits.connections, http::Limits().connections);
  EXPECT_EQ(limits.connections_of_address, http::Limits().connections_of_address);
  EXPECT_EQ(limits.request_timeout, http::Limits().request_timeout);
  EXPECT_EQ(limits.write_timeout, http::Limits().write_timeout);
  const server::AppOptions app = app_options(options, kPaths, "1");
  EXPECT_EQ(app.request_rate, server::AppOptions().request_rate);
  EXPECT_EQ(app.request_burst, server::AppOptions().request_burst);
  EXPECT_EQ(app.session_lifetime, server::AppOptions().session_lifetime);
  EXPECT_EQ(app.failed_logins.free_tries, access::FailedLogins::Options().free_tries);
  EXPECT_EQ(app.failed_logins.window, access::FailedLogins::Options().window);
  EXPECT_EQ(app.failed_logins.longest, access::FailedLogins::Options().longest);
  const auto notify = notify_settings(options);
  ASSERT_TRUE(notify);
  EXPECT_EQ(notify->schedule.first, notify::RetrySchedule().first);
  EXPECT_EQ(notify->schedule.longest, notify::RetrySchedule().longest);
  EXPECT_EQ(notify->schedule.give_up_after, notify::RetrySchedule().give_up_after);
}

TEST(NotifySettings, NameTheInvalidException) {
  const auto settings = notify_settings({.notify_allow = {"10.0.0.0/8", "not/an/address"}});

  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(settings.error().to_string().find("'not/an/address'"), std::string::npos);
}

}  // namespace
namespace {

class EngineRecord : public ::testing::Test {
 protected:
  void add_job(const std::string& name, job::Phase phase) {
    const job::Job job{.id = name, .spec = {.name = name}, .phase = phase};
    ASSERT_TRUE(store_.commit({.new_jobs = {{&job, ""}}}));
  }

  base::Result<void> keep_to(const std::string& engine) {
    MUSTER_CHECK(check_engine(folder_.path(), engine, store_));
    return note_engine(folder_.path(), engine);
  }

  std::string record() const { return config::recorded_engine(folder_.path()); }

  base::TestFolder folder_;
  store::MemoryStore store_;
};

TEST_F(EngineRecord, AcceptsAnyEngineIfNoJobRuns) {
  add_job("ended", job::Phase::kSucceeded);
  add_job("waits", job::Phase::kQueued);
  for (const char* engine : {"process", "slurm", "slurm", "container"}) {
    ASSERT_TRUE(keep_to(engine)) << engine;
    EXPECT_EQ(record(), engine);
  }
}

TEST_F(EngineRecord, RefusesAnotherEngineWhileJobsRun) {
  ASSERT_TRUE(keep_to("slurm"));
  add_job("one", job::Phase::kStarting);

  auto refused = keep_to("process");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(refused.error().what,
            "job 'one' runs on the engine 'slurm', and a server with the engine 'process' could "
            "not manage it");
  EXPECT_NE(refused.error().advice.find("--engine slurm"), std::string::npos);

  add_job("two", job::Phase::kRunning);
  add_job("three", job::Phase::kRunning);
  refused = keep_to("process");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().what.starts_with("job 'one' and 2 more run on the engine 'slurm'"))
      << refused.error().what;
  EXPECT_EQ(record(), "slurm");
  EXPECT_TRUE(keep_to("slurm"));
}

TEST_F(EngineRecord, IsRemovedWhenNoJobRuns) {
  ASSERT_TRUE(keep_to("slurm"));
  forget_engine(folder_.path());
  EXPECT_EQ(record(), "");
  forget_engine(folder_.path());
  add_job("one", job::Phase::kRunning);
  EXPECT_TRUE(keep_to("process"));
}

TEST_F(EngineRecord, AFolderWithoutATraceOfTheRunningJobsIsRefused) {
  const job::Job one{.id = "3k2x5m9q7w1z", .spec = {.name = "one"}};
  const job::Job two{.id = "aaaaaaaaaaaa", .spec = {.name = "two"}};
  const auto checked = [&](const std::vector<const job::Job*>& running) {
    return check_jobs_folder(folder_.path(), running);
  };

  EXPECT_TRUE(checked({}));
  const auto refused = checked({&one, &two});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(refused.error().what, "job 'one' and 1 more run, but the folder of the jobs '" +
                                      folder_.path().string() + "' has no trace of them");
  EXPECT_NE(refused.error().advice.find("--accept-lost-jobs"), std::string::npos);

  std::filesystem::create_directory(folder_ / two.id);
  EXPECT_TRUE(checked({&one, &two})) << "it is their folder; one of them is lost";
  EXPECT_FALSE(checked({&one}));
  ASSERT_TRUE(keep_to("process"));
  EXPECT_TRUE(checked({&one})) << "a server ran jobs here, and its machine may have failed";
}

}  // namespace
namespace {

namespace fs = std::filesystem;

TEST(ProjectFiles, AreSetAsideEachTimeTheirProjectIsDeleted) {
  const base::TestFolder storage;
  const base::Time now{std::chrono::seconds(1000)};
  for (int time = 0; time < 2; ++time) {
    fs::create_directories(storage / "team" / "models");
    ASSERT_TRUE(base::write_file(storage / "team/models/a", "weights"));

    ASSERT_TRUE(set_storage_aside(storage, "team", now + std::chrono::nanoseconds(time)));

    EXPECT_FALSE(fs::exists(storage / "team"));
    const fs::path aside =
        storage / (".removed/team-100000000000" + std::to_string(time)) / "models" / "a";
    const auto kept = base::read_file(aside);
    ASSERT_TRUE(kept) << kept.error().to_string();
    EXPECT_EQ(*kept, "weights");
  }
}

TEST(ProjectFiles, NothingIsSetAsideForAProjectWithoutFiles) {
  const base::TestFolder storage;

  ASSERT_TRUE(set_storage_aside(storage, "team", {}));

  EXPECT_TRUE(fs::is_empty(storage));
}

}  // namespace
}  // namespace muster::service
