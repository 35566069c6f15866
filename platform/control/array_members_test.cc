#include "control/array_members.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/test_parts.h"

namespace muster::control {
namespace {

using job::Phase;
using Where = HeldArray::Where;

TEST(HeldArray, ListsTheFirstMembersThatFailed) {
  ArrayRecord record{.id = "id", .spec = single("train", "default", 1)};
  record.spec.array.indexes = "10-19";
  HeldArray array(record, {});
  EXPECT_TRUE(array.first_failed(10).empty());

  array.set(7, Where::kJob, Phase::kFailed);
  array.set(2, Where::kJob, Phase::kStopped);
  array.set(4, Where::kJob, Phase::kFailed);
  array.set(5, Where::kJob, Phase::kSucceeded);
  EXPECT_EQ(array.first_failed(10), (std::vector<size_t>{2, 4, 7}));
  EXPECT_EQ(array.first_failed(2), (std::vector<size_t>{2, 4}));

  array.set(4, Where::kAgain, Phase::kQueued);
  EXPECT_EQ(array.first_failed(10), (std::vector<size_t>{2, 7}));
  array.state.stop_requested = true;
  EXPECT_EQ(array.first_failed(10), (std::vector<size_t>{7})) << "stopped with the array";
}

class ArrayFactsTest : public Scheduling {
 protected:
  std::string submit_array(const std::string& name) {
    job::JobSpec spec = single(name, "default", 1);
    spec.array.indexes = "0-9";
    spec.held = true;  // no member has a job
    const auto made = controller_->submit_array(spec, "", {.user = "ada"});
    EXPECT_TRUE(made) << made.error().to_string();
    settle();
    return made ? made->id : "";
  }
};

TEST_F(ArrayFactsTest, FactsOfArraysAreNotCopies) {
  const std::string first = submit_array("first");
  submit_array("second");
  const Arrays& arrays = controller_->arrays();
  const auto facts = arrays.facts_with_id(first);
  ASSERT_TRUE(facts);
  ASSERT_EQ(arrays.named("first").size(), 1U);
  EXPECT_EQ(&arrays.named("first").front().record, &facts->record);
  EXPECT_EQ(facts->counts.all(), 10);

  std::vector<std::string> names;
  const auto visit = [&](const ArrayFacts& array) {
    EXPECT_EQ(&array.record == &facts->record, array.record.id == first);
    names.push_back(array.record.spec.name);
    return names.size() != 1;
  };
  arrays.each(visit);
  EXPECT_EQ(names.size(), 1U) << "the visitor has enough";
  arrays.each(visit);
  EXPECT_EQ(names.size(), 3U);
}

TEST_F(ArrayFactsTest, AMemberOfAnArrayThatTheCallerDoesNotSeeIsNotMade) {
  submit_array("train");
  for (const char* const name : {"train-9", "train[9]"}) {
    const Arrays& arrays = controller_->arrays();
    EXPECT_EQ(arrays.jobless(name).size(), 1U);
    EXPECT_EQ(arrays.jobless(name, [](const ArrayFacts&) { return true; }).size(), 1U);
    EXPECT_TRUE(arrays.jobless(name, [](const ArrayFacts&) { return false; }).empty());
  }
}

}  // namespace
}  // namespace muster::control
