#include "engine/container/labels.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::engine {
namespace {

TEST(Labels, IdentifyTheirTask) {
  const Labels labels = labels_of_task("me", {"j1", 3}, "worker-0");

  EXPECT_EQ(task_of("me", labels), (LabelledTask{.gang = {"j1", 3}, .task = "worker-0"}));
  EXPECT_EQ(gang_of("me", labels), (GangId{"j1", 3}));
  EXPECT_EQ(job_of("me", labels), "j1");
}

TEST(Labels, OfAnotherOwnerAreIgnored) {
  const Labels labels = labels_of_task("me", {"j1", 3}, "worker-0");

  EXPECT_FALSE(task_of("you", labels));
  EXPECT_FALSE(gang_of("you", labels));
  EXPECT_EQ(job_of("you", labels), "");
}

TEST(Labels, ThatAreIncompleteOrInvalidAreOfNoTask) {
  EXPECT_FALSE(task_of("me", {}));
  EXPECT_FALSE(task_of("me", labels_of_gang("me", {"j1", 3})));
  EXPECT_FALSE(gang_of("me", labels_of_job("me", "j1")));
  for (const char* attempt : {"", "x", "1x", "99999999999"}) {
    Labels labels = labels_of_task("me", {"j1", 3}, "main");
    labels[kAttemptLabel] = attempt;
    EXPECT_FALSE(task_of("me", labels)) << attempt;
  }
}

TEST(Labels, BecomeFiltersWithTheirValues) {
  EXPECT_EQ(as_filters(labels_of_job("me", "j1")),
            (std::vector<std::string>{"org.muster.job=j1", "org.muster.owner=me"}));
}

TEST(Labels, NamesContainJobAttemptAndTask) {
  EXPECT_EQ(container_name({"j1", 2}, "worker-0"), "muster-j1-2-worker-0");
  EXPECT_EQ(network_name({"j1", 2}), "muster-j1-2");
  EXPECT_EQ(volume_name("j1", "tree-0"), "muster-j1-tree-0");
  EXPECT_EQ(storage_name("me", "team-a", "data"), "muster-storage-me.team-a.data");
}

TEST(Labels, DifferentThingsHaveDifferentValidNames) {
  const std::vector<std::string> names{
      storage_name("o", "a-b", "c"),      storage_name("o", "a", "b-c"),
      storage_name("o", "a.b", "c"),      storage_name("o", "a", "b.c"),
      storage_name("o", "a_", "c"),       storage_name("o", "a", "_c"),
      storage_name("o", "a_5fb", "c"),    storage_name("o", "a_b", "c"),
      storage_name("o", "\xc3\xa4", "/"), volume_name("storage-o", "x")};

  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_."), std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace muster::engine
