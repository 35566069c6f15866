#include "engine/container/task_table.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(ContainerRecord, IsReadAsItWasWritten) {
  for (const char* artifacts : {"", "/artifacts"}) {
    const ContainerRecord record{.host = "node-1",
                                 .container = "0123ab",
                                 .artifacts = artifacts,
                                 .devices = {1, 2},
                                 .gpu_share_milli = 500,
                                 .job_name = "train",
                                 .project = "lab"};
    const auto read = decode_container_record(encode(record));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, record);
  }
}

TEST(ContainerRecord, OfAnOlderServerIsRead) {
  const auto read = decode_container_record(R"({"host":"node-1","container":"0123ab"})");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (ContainerRecord{.host = "node-1", .container = "0123ab"}));
}

TEST(ContainerRecord, ThatIsIncompleteOrInvalidIsAnError) {
  const std::string whole = encode(ContainerRecord{.host = "node-1", .container = "0123ab"});
  for (const std::string& text :
       {std::string(), whole.substr(0, 20), std::string("[]"), std::string("{\"host\":1}")}) {
    EXPECT_FALSE(decode_container_record(text)) << text;
  }
}

}  // namespace
}  // namespace muster::engine
