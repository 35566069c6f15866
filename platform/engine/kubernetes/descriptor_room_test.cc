#include "engine/kubernetes/descriptor_room.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/test_folder.h"
#include "base/test_loop.h"

namespace muster::engine::kubernetes {
namespace {

/// A limit of 80 open files, of which 70 are for the connections, and others have 10.
class RoomForDescriptors : public testing::Test, protected base::TestLoop {
 protected:
  PodGangPointer gang_of(const std::string& job, int pods) {
    const PodGangPointer gang = table_.add({.job_id = job, .attempt = 1}, rsh::Key{});
    for (int i = 0; i < pods; ++i) table_.add_task(gang, "worker-" + std::to_string(i));
    return gang;
  }

  base::TestFolder folder_;
  lent::GangTable shared_{loop(), pod_table_options(folder_ / "jobs")};
  PodGangTable table_{shared_, "owner"};
  base::Descriptors counted_{.open = 10, .limit = 80};
  std::vector<std::string> gone_;
  DescriptorRoom room_{
      loop(),
      table_,
      {.count = [this] { return counted_; }, .pause = std::chrono::milliseconds(1)},
      [this](const PodGangPointer& gang) {
        gone_.push_back(gang->gang.job_id);
        look();
      }};
};

TEST_F(RoomForDescriptors, AdmitsGangsWhileThereAreDescriptorsForTheirConnections) {
  EXPECT_TRUE(room_.admit(gang_of("first", 30)));
  EXPECT_TRUE(room_.admit(gang_of("second", 30)));  // 10 + 60 of 70
  const PodGangPointer third = gang_of("third", 1);

  EXPECT_FALSE(room_.admit(third));

  ASSERT_TRUE(third->refusal);
  EXPECT_EQ(third->refusal->what,
            "the connection to each pod is an open file, and the server's limit of open files, 80, "
            "leaves too few for its pod beside its other jobs; to raise it, set LimitNOFILE of the "
            "server's service, or ulimit -Hn");
  EXPECT_FALSE(third->fault);
}

TEST_F(RoomForDescriptors, AGangThatWaitedIsAdmittedWhenOthersAreGone) {
  const PodGangPointer first = gang_of("first", 60);
  ASSERT_TRUE(room_.admit(first));
  const PodGangPointer second = gang_of("second", 60);
  ASSERT_FALSE(room_.admit(second));
  const PodGangPointer small = gang_of("small", 1);
  ASSERT_FALSE(room_.admit(small)) << "it may not overtake the gang that waits";

  table_.remove(first);
  ASSERT_TRUE(run_until([&] { return gone_.size() == 1; }));

  EXPECT_EQ(gone_, std::vector<std::string>{"second"});
  EXPECT_FALSE(second->refusal);
  EXPECT_TRUE(room_.admit(second));
  EXPECT_FALSE(room_.admit(small));

  table_.remove(second);
  ASSERT_TRUE(run_until([&] { return gone_.size() == 2; }));
  EXPECT_EQ(gone_.back(), "small");
}

TEST_F(RoomForDescriptors, ACancelledGangDoesNotBlockTheNextOne) {
  const PodGangPointer first = gang_of("first", 60);
  ASSERT_TRUE(room_.admit(first));
  PodGangPointer cancelled = gang_of("cancelled", 60);
  ASSERT_FALSE(room_.admit(cancelled));
  const PodGangPointer last = gang_of("last", 60);
  ASSERT_FALSE(room_.admit(last));

  cancelled->is_releasing = true;
  table_.remove(first);

  ASSERT_TRUE(run_until([&] { return !gone_.empty(); }));
  EXPECT_EQ(gone_, std::vector<std::string>{"last"});
}

TEST_F(RoomForDescriptors, AGangThatCanNeverBeConnectedFails) {
  const PodGangPointer gang = gang_of("large", 71);

  EXPECT_FALSE(room_.admit(gang));

  ASSERT_TRUE(gang->fault);
  EXPECT_EQ(gang->fault->code, base::ErrorCode::kExhausted);
}

TEST_F(RoomForDescriptors, GangsOfAnEarlierServerHaveTheirPods) {
  const PodGangPointer adopted = gang_of("adopted", 60);
  adopted->uid = "1";

  EXPECT_TRUE(room_.admit(adopted));
  EXPECT_FALSE(room_.admit(gang_of("next", 1)));
}

TEST_F(RoomForDescriptors, OtherDescriptorsCount) {
  counted_.open = 70;

  EXPECT_FALSE(room_.admit(gang_of("job", 1)));

  counted_.open = 69;
  EXPECT_TRUE(run_until([&] { return !gone_.empty(); }));
}

}  // namespace
}  // namespace muster::engine::kubernetes
