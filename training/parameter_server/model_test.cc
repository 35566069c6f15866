#include "parameter_server/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <thread>
#include <vector>

namespace muster::parameter_server {
namespace {

Declaration declared(std::vector<Tensor> tensors) {
  return {.tensors = std::move(tensors), .optimizer = Sgd{.learning_rate = 1}};
}

std::vector<float> read_all(const Model& model, const Model::Selection& selection) {
  std::vector<float> values(selection.elements());
  std::size_t at = 0;
  for (std::size_t i = 0; i < selection.size(); ++i) {
    model.read(selection, i, reinterpret_cast<std::byte*>(values.data() + at));
    at += selection.count(i);
  }
  return values;
}

TEST(Model, AppliesAPushToItsTensorsInTheirOrder) {
  Model model(declared({{"a", {2}}, {"b", {}}, {"c", {2}}}), {1, 2, 3, 4, 5});
  const auto some = model.select(std::vector<NamedTensor>{{"c", 2}, {"a", 2}});
  ASSERT_TRUE(some);
  model.apply(*some, std::vector<float>{10, 20, 30, 40});
  EXPECT_EQ(read_all(model, *some), (std::vector<float>{-6, -15, -29, -38}));
  EXPECT_EQ(read_all(model, *model.select(std::vector<NamedTensor>{{"b", 1}})),
            std::vector<float>{3});
  EXPECT_EQ(model.pushes(), 1U);
  EXPECT_EQ(model.bytes(), 20U);
}

TEST(Model, HoldsItsPartAndNamesElementsByTheirIndexInTheWholeModel) {
  Declaration declaration = declared({{"a", {3}}, {"b", {3}}, {"c", {3}}});
  declaration.server = 1;
  declaration.servers = 2;  // this server has the last four of nine elements
  Model model(declaration, {1, 2, 3, 4});
  EXPECT_EQ(model.tensors_here(), 2U);
  const auto all = model.select(std::vector<NamedTensor>{{"a", 3}, {"b", 3}, {"c", 3}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->elements(), 4U);
  EXPECT_EQ(all->name_of(0), "element 2 of 'b'");
  EXPECT_EQ(all->name_of(3), "element 2 of 'c'");
}

TEST(Model, RejectsAPushWithAllItsFaults) {
  const Model model(declared({{"w", {2, 3}}, {"b", {3}}}), std::vector<float>(9));
  const auto selection =
      model.select(std::vector<NamedTensor>{{"v", 1}, {"w", 5}, {"b", 3}, {"b", 3}});
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().message,
            "parameter 'v' was not declared; 'w' has 6 elements (2x3), not 5; 'b' occurs twice");
}

TEST(Model, ComparesDeclarationsAndShowsBothValues) {
  const Declaration first = declared({{"w", {2, 3}}, {"b", {3}}});
  EXPECT_TRUE(compare(first, first));
  Declaration of_three = first;
  of_three.servers = 3;
  Declaration by_adam = first;
  by_adam.optimizer = Adam{};
  struct Row {
    Declaration later;
    const char* message;
  };
  for (const Row& row : {
           Row{declared({{"w", {3, 2}}, {"b", {3}}}),
               "'w' was declared as 2x3 by the first worker, and now as 3x2"},
           Row{declared({{"w", {2, 3}}}),
               "'b' was declared as 3 by the first worker, and now as nothing"},
           Row{declared({{"w", {2, 3}}, {"c", {3}}}),
               "'c' was declared as nothing by the first worker, and now as 3"},
           Row{declared({{"b", {3}}, {"w", {2, 3}}}),
               "parameter 0 was declared as 'w' by the first worker, and now as 'b'"},
           Row{of_three,
               "this parameter server was declared as number 0 of 1 by the first worker, "
               "and now as number 0 of 3"},
           Row{by_adam,
               "the optimizer was declared as sgd, learning rate 1 by the first worker, "
               "and now as adam, learning rate 0.001, beta1 0.9, beta2 0.999, epsilon "
               "1e-08"},
       }) {
    const auto same = compare(first, row.later);
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().message, row.message);
    EXPECT_EQ(same.error().code, collective::ErrorCode::kMismatch);
  }
}

TEST(Model, LosesNoPushOfManyThreads) {
  constexpr int kThreads = 8;
  constexpr int kPushes = 50;
  constexpr std::size_t kElements = 3 * kSliceElements / 2;
  Model model(declared({{"w", {kElements}}}), std::vector<float>(kElements));
  const auto all = model.select(std::vector<NamedTensor>{{"w", kElements}});
  ASSERT_TRUE(all);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const std::vector<float> gradient(kElements, -1);
      for (int push = 0; push < kPushes; ++push) {
        model.apply(*all, gradient);
        if (push % 10 == 0) read_all(model, *all);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Whole numbers, whose sum is exact in any order.
  EXPECT_EQ(read_all(model, *all), std::vector<float>(kElements, kThreads * kPushes));
  EXPECT_EQ(model.pushes(), static_cast<std::uint64_t>(kThreads) * kPushes);
}

}  // namespace
namespace {

TEST(Share, DoesEachPartOnce) {
  for (const std::size_t threads : {0, 1, 3, 8}) {
    for (const std::size_t parts : {0, 1, 2, 100}) {
      std::vector<int> done(parts);
      share(parts, threads, [&](std::size_t part) { ++done[part]; });
      EXPECT_EQ(done, std::vector<int>(parts, 1)) << threads << " threads";
    }
  }
}

TEST(Share, UsesAsManyThreadsAsAllowed) {
  constexpr std::size_t kThreads = 3;
  std::latch all_at_work(kThreads);
  share(kThreads, kThreads, [&](std::size_t) { all_at_work.arrive_and_wait(); });
  EXPECT_TRUE(all_at_work.try_wait());
}

}  // namespace
}  // namespace muster::parameter_server
