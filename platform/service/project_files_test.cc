#include "service/project_files.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::service {
namespace {

namespace fs = std::filesystem;

TEST(ProjectFiles, AreSetAsideEachTimeTheirProjectGoes) {
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

TEST(ProjectFiles, AProjectThatKeptNothingLeavesNothing) {
  const base::TestFolder storage;

  ASSERT_TRUE(set_storage_aside(storage, "team", {}));

  EXPECT_TRUE(fs::is_empty(storage));
}

}  // namespace
}  // namespace muster::service
