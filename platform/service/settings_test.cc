#include "service/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::service {
namespace {

const config::Paths kPaths{.state_folder = "/state", .socket = "/run/muster.sock"};

TEST(StorePlace, IsTheDatabaseOfTheStateFolderUnlessToldOtherwise) {
  config::ServeOptions options;
  EXPECT_EQ(*store_place(options, kPaths), "/state/muster.db");
  options.store = "/srv/a.db";
  EXPECT_EQ(*store_place(options, kPaths), "/srv/a.db");
  options.store = "postgres://muster@db/m";
  EXPECT_EQ(*store_place(options, kPaths), "postgres://muster@db/m");
}

TEST(StorePlace, GetsThePasswordOfAFileForItsOwnerAlone) {
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

TEST(EmptiedDatabase, IsRefusedOnceAServerHasUsedTheFolder) {
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

TEST(RetentionRules, AreNoneUnlessTheyAreSet) {
  EXPECT_EQ(retention_rules({}), control::RetentionRules());
  const control::RetentionRules rules{
      .keep_for = std::chrono::hours(1), .keep_jobs = 0, .keep_bytes = 5000};
  EXPECT_EQ(retention_rules({.keep_jobs_for = rules.keep_for,
                             .keep_jobs = rules.keep_jobs,
                             .keep_bytes = rules.keep_bytes}),
            rules);
}

TEST(OwnAddress, IsOneThatCallersCanReach) {
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

TEST(Defaults, OfTheConfigurationAreThoseOfTheParts) {
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

TEST(NotifySettings, NameTheExceptionThatIsNone) {
  const auto settings = notify_settings({.notify_allow = {"10.0.0.0/8", "not/an/address"}});

  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(settings.error().what.find("'not/an/address'"), std::string::npos);
}

}  // namespace
}  // namespace muster::service
