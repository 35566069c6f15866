#include "engine/process/team_places.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace fs = std::filesystem;

namespace {

using Environment = std::vector<std::string>;

const Mount* team_mount_at(const std::vector<Mount>& mounts, const fs::path& target) {
  const auto found = std::find_if(mounts.begin(), mounts.end(),
                                  [&](const Mount& mount) { return mount.target == target; });
  return found == mounts.end() ? nullptr : &*found;
}

TEST(TeamPlaces, GiveEachUserAHomeAtTheAccountsPath) {
  const base::TestFolder folder;
  fs::create_directory(folder / "account");
  const TeamPlaces places{.homes = folder / "homes", .account_home = folder / "account"};

  const auto mounts = mounts_in_private_places(places, "ada", "/usr/bin");

  ASSERT_TRUE(mounts) << mounts.error().to_string();
  const Mount* const home = team_mount_at(*mounts, home_of_tasks(places));
  ASSERT_NE(home, nullptr);
  EXPECT_EQ(home->source, folder / "homes" / "ada");
  EXPECT_TRUE(home->own);
  EXPECT_EQ(fs::status(home->source).permissions(), fs::perms::owner_all);
}

TEST(TeamPlaces, ShowSharedFoldersAndMustersPrograms) {
  const base::TestFolder folder;
  for (const char* name : {"account/data", "account/programs", "elsewhere"}) {
    fs::create_directories(folder / name);
  }
  const fs::path account = fs::canonical(folder / "account");
  const TeamPlaces places{.homes = folder / "homes",
                          .account_home = account,
                          .shared = {account / "data", account / "not-there", "/usr/share"}};

  const auto mounts = mounts_in_private_places(places, "ada", account / "programs");

  ASSERT_TRUE(mounts) << mounts.error().to_string();
  const Mount* const data = team_mount_at(*mounts, account / "data");
  const Mount* const programs = team_mount_at(*mounts, account / "programs");
  ASSERT_NE(data, nullptr);
  ASSERT_NE(programs, nullptr);
  EXPECT_FALSE(data->read_only);
  EXPECT_TRUE(programs->read_only);
  EXPECT_EQ(team_mount_at(*mounts, account / "not-there"), nullptr);
  EXPECT_EQ(team_mount_at(*mounts, "/usr/share"), nullptr);  // not a private place
}

TEST(TeamPlaces, RefuseAWorkingFolderThatTasksDoNotSee) {
  const base::TestFolder folder;
  const fs::path home = fs::canonical(folder.path());
  fs::create_directories(home / "work/data");
  const TeamPlaces places{.homes = home / "homes", .account_home = home};
  const Mount other{.source = home / "work", .target = home / "other"};
  const Mount itself{.source = home / "work", .target = home / "work"};
  const Mount below{.source = home / "work/data", .target = home / "work/data"};
  const Mount own_home{.source = home / "homes/ada", .target = home, .own = true};

  for (const std::vector<Mount>& mounts : {std::vector<Mount>{}, {other}, {own_home}}) {
    const auto seen = check_working_folder(places, home / "work", mounts);
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code, base::ErrorCode::kRefused);  // it is not retried
    EXPECT_TRUE(seen.error().what.starts_with("its working folder '" + (home / "work").string() +
                                              "' is hidden: "))
        << seen.error().what;
    EXPECT_NE(seen.error().advice.find("shared_folders"), std::string::npos);
  }
  EXPECT_TRUE(check_working_folder(places, home / "work", {itself}));
  EXPECT_TRUE(check_working_folder(places, home / "work", {below}));
  EXPECT_TRUE(check_working_folder(places, home / "missing", {}));  // the shim reports it
  EXPECT_TRUE(check_working_folder(places, "/usr", {}));
  EXPECT_TRUE(check_working_folder(places, "/tmp", {}));  // empty, but visible
}

TEST(TeamPlaces, RefuseAUserWhoseNameLeadsOutOfTheHomes) {
  const base::TestFolder folder;
  const TeamPlaces places{.homes = folder / "homes", .account_home = folder.path()};

  for (const char* name : {"..", "", "a/b"}) {
    EXPECT_FALSE(mounts_in_private_places(places, name, "/usr/bin")) << name;
  }
}

TEST(TeamPlaces, WithoutAnAccountHomeTasksLiveInTmp) {
  EXPECT_EQ(home_of_tasks({.homes = "/x", .account_home = "/nonexistent"}), "/tmp");
  EXPECT_EQ(home_of_tasks({.homes = "/x", .account_home = "/"}), "/tmp");
}

TEST(TeamPlaces, ProgramsAroundTasksGetNoVariableOfTheServer) {
  EXPECT_EQ(
      environment_for_holders({"PATH=/bin", "PGPASSWORD=sesame", "LANG=C.UTF-8", "AWS_KEY=x"}),
      (Environment{"PATH=/bin", "LANG=C.UTF-8"}));
}

}  // namespace
}  // namespace muster::engine
