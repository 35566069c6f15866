#include "engine/node/task_reports.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

#include "base/test_folder.h"

namespace muster::engine::node {
namespace {

/// Changes are reported at intervals, and a task may end before the next one.
TEST(TaskReports, ChangesAreReportedBeforeTheEnd) {
  base::EventLoop loop;
  const base::TestFolder folder;
  std::vector<NodeNews> sent;
  TaskReports reports(loop, {folder.path()}, true,
                      [&](NodeNews news) { sent.push_back(std::move(news)); });
  reports.report_again({});
  reports.started(std::nullopt);
  reports.grown(true, false);
  reports.grown(false, true);

  reports.ended({});

  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(std::get<GrownNews>(sent[1]), (GrownNews{.log = true}));
  EXPECT_EQ(std::get<GrownNews>(sent[2]), (GrownNews{.ranks = true}));
  EXPECT_TRUE(std::holds_alternative<EndedNews>(sent[3]));
}

}  // namespace
}  // namespace muster::engine::node
