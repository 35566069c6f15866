#include "engine/folder/mounts.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

class PlanMounts : public testing::Test {
 protected:
  PlanMounts() {
    for (const char* name : {"machine/there", "source/inner", "hidden"}) {
      fs::create_directories(folder_ / name);
    }
    EXPECT_TRUE(base::write_new_file(folder_ / "machine/file", ""));
    EXPECT_TRUE(base::write_new_file(folder_ / "source-file", ""));
  }

  fs::path machine(const std::string& name) const { return folder_ / ("machine/" + name); }

  Mount folder_at(const fs::path& target) const {
    return {.source = folder_ / "source", .target = target};
  }

  base::Result<MountPlan> plan(std::vector<Mount> mounts) const {
    return plan_mounts(std::move(mounts), {fs::path(folder_) / "hidden"});
  }

  const base::TestFolder folder_;
};

TEST_F(PlanMounts, MountsOverAnExistingFolder) {
  const auto planned = plan({folder_at(machine("there"))});

  ASSERT_TRUE(planned);
  EXPECT_TRUE(planned->fresh.empty());
  EXPECT_EQ(planned->mounts, std::vector<Mount>{folder_at(machine("there"))});
}

TEST_F(PlanMounts, AMissingFolderMakesItsParentFresh) {
  const auto planned = plan({folder_at(machine("new/deep")), folder_at(machine("other"))});

  ASSERT_TRUE(planned);
  using Fresh = std::map<fs::path, std::set<std::string>>;
  EXPECT_EQ(planned->fresh, (Fresh{{machine("").parent_path(), {"new", "other"}}}));
  EXPECT_FALSE(fs::exists(machine("new")));
}

TEST_F(PlanMounts, AFileInPlaceOfAFolderMakesItsParentFresh) {
  const auto planned = plan({folder_at(machine("file"))});

  ASSERT_TRUE(planned);
  EXPECT_TRUE(planned->fresh.at(fs::path(folder_) / "machine").contains("file"));
}

TEST_F(PlanMounts, FollowsTheMachinesLinks) {
  fs::create_directory_symlink(machine("there"), machine("link"));

  const auto planned = plan({folder_at(machine("link/new"))});

  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->mounts[0].target, machine("there/new"));
  EXPECT_TRUE(planned->fresh.at(machine("there")).contains("new"));
}

TEST_F(PlanMounts, CreatesNothingInHiddenFolders) {
  const fs::path target = folder_ / "hidden/new";
  const auto planned = plan({folder_at(target)});

  ASSERT_TRUE(planned);
  EXPECT_TRUE(planned->fresh.empty());
  EXPECT_EQ(planned->mounts[0].target, target);
}

TEST_F(PlanMounts, RefusesPathsOfTheSandbox) {
  for (const char* target : {"/", "/proc", "/proc/x", "/sys/x", "/dev/shm", "/generated/x"}) {
    EXPECT_FALSE(plan({folder_at(target)})) << target;
  }
  fs::create_directory_symlink("/proc", machine("link"));
  EXPECT_FALSE(plan({folder_at(machine("link/x"))}));
}

TEST_F(PlanMounts, RefusesAPlaceBelowAFile) {
  const auto planned = plan({folder_at(machine("file/x"))});

  ASSERT_FALSE(planned);
  EXPECT_NE(planned.error().what.find("is a file"), std::string::npos);
}

// --- one within another

TEST_F(PlanMounts, OuterMountsComeFirst) {
  const auto planned = plan({folder_at(machine("there/inner")), folder_at(machine("there"))});

  ASSERT_TRUE(planned) << planned.error().to_string();
  EXPECT_EQ(planned->mounts[0].target, machine("there"));
  EXPECT_EQ(planned->mounts[1].target, machine("there/inner"));
  EXPECT_TRUE(planned->fresh.empty());
}

TEST_F(PlanMounts, CreatesMountPointsOnlyInFoldersOfMuster) {
  Mount outer = folder_at("/x");
  const Mount inner = folder_at("/x/new/deep");
  const auto refused = plan({outer, inner});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "nothing can be mounted at /x/new/deep: it is within /x, and there "
            "is no " +
                (folder_ / "source/new/deep").string());
  EXPECT_FALSE(fs::exists(folder_ / "source/new"));

  outer.own = true;
  ASSERT_TRUE(plan({outer, inner}));
  EXPECT_TRUE(fs::is_directory(folder_ / "source/new/deep"));
}

TEST_F(PlanMounts, TheMountPointOfAFileIsAFile) {
  Mount outer = folder_at("/x");
  outer.own = true;
  const Mount inner{.source = folder_ / "source-file", .target = "/x/deep/file"};

  ASSERT_TRUE(plan({outer, inner}));

  EXPECT_TRUE(fs::is_regular_file(folder_ / "source/deep/file"));
}

TEST_F(PlanMounts, NoLinkLeadsOutOfAVolume) {
  fs::create_directory_symlink(machine("there"), folder_ / "source/link");
  Mount outer = folder_at("/x");
  outer.own = true;

  EXPECT_FALSE(plan({outer, folder_at("/x/link")}));
  EXPECT_FALSE(plan({outer, folder_at("/x/link/new")}));
  EXPECT_TRUE(fs::is_empty(machine("there")));
}

TEST_F(PlanMounts, RefusesTwoVolumesAtOneRealPath) {
  fs::create_directory_symlink(machine("there"), machine("link"));

  EXPECT_FALSE(plan({folder_at(machine("link")), folder_at(machine("there"))}));
}

// --- names

TEST(IsWithin, HoldsForTheFolderAndItsContent) {
  EXPECT_TRUE(is_within("/a/b", "/a"));
  EXPECT_TRUE(is_within("/a", "/a"));
  EXPECT_TRUE(is_within("/a", "/"));
  EXPECT_FALSE(is_within("/ab", "/a"));
  EXPECT_FALSE(is_within("/", "/a"));
}

TEST(RealPaths, LeaveOutMissingAndInnerPaths) {
  const base::TestFolder folder;
  const fs::path real = fs::canonical(folder);
  fs::create_directories(folder / "a/b");
  fs::create_directory_symlink("a", folder / "link");

  EXPECT_EQ(real_paths({folder / "link", folder / "a/b", folder / "missing"}),
            std::vector<fs::path>{real / "a"});
}

}  // namespace
}  // namespace muster::engine
