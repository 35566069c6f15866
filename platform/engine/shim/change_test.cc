#include "engine/shim/change.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

using PlannedFiles = std::vector<launch::PlannedFile>;

TEST(ChangedFiles, AreReadBackByteForByte) {
  const PlannedFiles files{
      {.path = "hostfile", .content = std::string("w\0\xff\n", 4), .mode = 0644},
      {.path = "rank", .content = "", .mode = 0700}};

  const auto read = decode_files(encode(files));

  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, files);
  for (const char* text : {"", "{", "\xa0", "nonsense"}) EXPECT_FALSE(decode_files(text)) << text;
}

class ChangeFiles : public testing::Test {
 protected:
  ChangeFiles() { std::filesystem::create_directory(task_.generated()); }

  const base::TestFolder folder_;
  const TaskFolder task_{folder_.path()};
};

TEST_F(ChangeFiles, OfATaskWhoseMpiReadsAnotherFileAreThatOnes) {
  ASSERT_TRUE(base::write_file(
      task_.plan(), encode(ShimPlan{.inner = {.taken_from = {{"hostfile", "hostfile.intel"},
                                                             {"other", "not.changed"}}}})));

  ASSERT_TRUE(change_files(task_, {{.path = "hostfile", .content = "w slots=1\n"},
                                   {.path = "hostfile.intel", .content = "w:1\n"},
                                   {.path = "other", .content = "its own\n"}}));

  EXPECT_EQ(*base::read_file(task_.generated() / "hostfile"), "w:1\n");
  EXPECT_EQ(*base::read_file(task_.generated() / "hostfile.intel"), "w:1\n");
  EXPECT_EQ(*base::read_file(task_.generated() / "other"), "its own\n");
}

TEST_F(ChangeFiles, LieWhereThePlanSays) {
  std::filesystem::create_directory(folder_ / "elsewhere");
  ASSERT_TRUE(base::write_file(task_.plan(),
                               encode(ShimPlan{.generated = (folder_ / "elsewhere").string()})));

  ASSERT_TRUE(change_files(task_, {{.path = "hostfile", .content = "w slots=1\n"}}));

  EXPECT_EQ(*base::read_file(folder_ / "elsewhere/hostfile"), "w slots=1\n");
}

TEST_F(ChangeFiles, OfATaskThatHasEndedAreNotFound) {
  EXPECT_EQ(change_files(task_, {{.path = "hostfile"}}).error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace muster::engine
