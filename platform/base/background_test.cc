#include "base/background.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

namespace muster::base {
namespace {

TEST(Background, WorksOnAnotherThreadAndIsDoneOnTheLoops) {
  EventLoop loop;
  Background background(loop);
  std::thread::id worked_on;
  std::thread::id done_on;

  background.run([&] { worked_on = std::this_thread::get_id(); },
                 [&] {
                   done_on = std::this_thread::get_id();
                   loop.stop();
                 });
  loop.run();

  EXPECT_NE(worked_on, std::this_thread::get_id());
  EXPECT_EQ(done_on, std::this_thread::get_id());
}

TEST(Background, WorksOffOnePieceAfterTheOther) {
  EventLoop loop;
  Background background(loop);
  std::string order;
  for (const char letter : {'a', 'b', 'c'}) {
    background.run([&order, letter] { order += letter; },
                   [&loop, letter] {
                     if (letter == 'c') loop.stop();
                   });
  }

  loop.run();

  EXPECT_EQ(order, "abc");
}

TEST(Background, TheLoopGoesOnWhileAPieceBlocks) {
  EventLoop loop;
  Background background(loop);
  std::promise<void> released;
  bool went_on = false;
  background.run([&] { released.get_future().wait(); }, [&] { loop.stop(); });
  loop.post([&] {
    went_on = true;
    released.set_value();
  });

  loop.run();

  EXPECT_TRUE(went_on);
}

TEST(Background, IsDestroyedOnlyWhenThePieceUnderWayIsOverAndDropsTheOthers) {
  EventLoop loop;
  std::promise<void> begun;
  std::promise<void> dropped;
  std::string ran;
  auto background = std::make_unique<Background>(loop);
  background->run(
      [&] {
        begun.set_value();
        // Lasts until the other piece is gone, so until the destructor is at work.
        dropped.get_future().wait();
        ran += "first";
      },
      [&] { ran += " and done"; });
  std::shared_ptr<void> of_the_second(nullptr, [&](void*) { dropped.set_value(); });
  background->run([&, held = std::move(of_the_second)] { ran += " second"; },
                  [&] { ran += " and done"; });
  begun.get_future().wait();

  background.reset();

  EXPECT_EQ(ran, "first");
  loop.stop();
  loop.run();  // what is done of the first piece waits there, and is nobody's any more
  EXPECT_EQ(ran, "first");
}

TEST(Background, OneThatWasNeverUsedEndsAtOnce) {
  EventLoop loop;
  const Background background(loop);
}

}  // namespace
}  // namespace muster::base
