#include "cli/spec/submit_order.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::cli::spec {
namespace {

job::JobSpec waiting(const std::string& name, const std::vector<std::string>& others,
                     const std::string& project = "lab") {
  job::JobSpec spec{.name = name, .project = project};
  for (const std::string& other : others) spec.after.push_back({.job = other});
  return spec;
}

base::Result<std::vector<size_t>> order_of(const std::vector<job::JobSpec>& specs) {
  std::vector<const job::JobSpec*> pointers;
  for (const job::JobSpec& spec : specs) pointers.push_back(&spec);
  return submit_order(pointers);
}

using Order = std::vector<size_t>;

TEST(SubmitOrder, PutsAJobBehindThoseThatItWaitsFor) {
  EXPECT_EQ(*order_of({waiting("a", {}), waiting("b", {}), waiting("c", {})}), (Order{0, 1, 2}));
  EXPECT_EQ(*order_of({waiting("c", {"b"}), waiting("b", {"a"}), waiting("a", {})}),
            (Order{2, 1, 0}));
  EXPECT_EQ(*order_of({waiting("end", {"left", "right"}), waiting("left", {"begin"}),
                       waiting("right", {"begin"}), waiting("begin", {"elsewhere"})}),
            (Order{3, 1, 2, 0}));
}

TEST(SubmitOrder, NamesOfOtherProjectsAreOtherJobs) {
  EXPECT_EQ(*order_of({waiting("a", {"b"}), waiting("b", {"a"}, "other")}), (Order{0, 1}));
}

TEST(SubmitOrder, PrintsACircle) {
  const auto order = order_of(
      {waiting("x", {"a"}), waiting("a", {"b"}), waiting("b", {"c"}), waiting("c", {"a"})});
  ASSERT_FALSE(order);
  EXPECT_EQ(order.error().what,
            "jobs wait for each other in a circle: a waits for b waits for c waits for a");
}

}  // namespace
}  // namespace muster::cli::spec
