#include "base/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace muster::base {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void write_to(const UniqueFd& fd, const std::string& text) {
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

char read_one(const UniqueFd& fd) {
  char letter = 0;
  EXPECT_EQ(::read(fd.get(), &letter, 1), 1);
  return letter;
}

TEST(EventLoop, RunsCallbacksOfOtherThreadsOnItsOwnThread) {
  EventLoop loop;
  std::thread::id ran_on;
  std::thread other([&] {
    loop.post([&] {
      ran_on = std::this_thread::get_id();
      loop.stop();
    });
  });

  loop.run();

  other.join();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(EventLoop, RunsPostedCallbacksInOrder) {
  EventLoop loop;
  std::string order;
  for (const char letter : {'a', 'b', 'c'}) loop.post([&order, letter] { order += letter; });
  loop.stop();

  loop.run();

  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, AStopBeforeTheRunEndsTheRun) {
  EventLoop loop;
  loop.stop();

  loop.run();

  loop.stop();
  loop.run();  // the loop can be run again
}

TEST(EventLoop, CallsAfterTheDelayAndInTheOrderOfDelays) {
  EventLoop loop;
  std::string order;
  const auto begin = std::chrono::steady_clock::now();
  const auto late = loop.after(milliseconds(20), [&] {
    order += "late";
    loop.stop();
  });
  const auto soon = loop.after(milliseconds(1), [&] { order += "soon "; });

  loop.run();

  EXPECT_EQ(order, "soon late");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
}

TEST(EventLoop, CallsAgainWhileUnreadBytesRemain) {
  EventLoop loop;
  const Pipe pipe = make_pipe();
  std::string read;
  const auto interest = loop.when_readable(pipe.reader.get(), [&] {
    read += read_one(pipe.reader);
    if (read.size() == 3) loop.stop();
  });
  write_to(pipe.writer, "abc");

  loop.run();

  EXPECT_EQ(read, "abc");
}

TEST(EventLoop, AnInterestDroppedInItsOwnCallbackIsNotCalledAgain) {
  EventLoop loop;
  const Pipe pipe = make_pipe();
  int calls = 0;
  EventLoop::Interest interest;
  // The text is owned by the callback: it must outlive the interest that owns the callback.
  interest = loop.when_readable(pipe.reader.get(), [&, text = std::string(100, 'x')] {
    ++calls;
    interest.reset();
    EXPECT_EQ(text, std::string(100, 'x'));
    loop.post([&] { loop.stop(); });
  });
  write_to(pipe.writer, "left unread");

  loop.run();

  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, AnInterestDroppedBeforeItsEventIsNeverCalled) {
  EventLoop loop;
  const Pipe pipe = make_pipe();
  bool called = false;
  auto timer = loop.after(milliseconds(0), [&] { called = true; });
  auto reading = loop.when_readable(pipe.reader.get(), [&] { called = true; });
  write_to(pipe.writer, "x");
  // Both timers are due in the first turn, but this callback precedes theirs.
  loop.post([&] {
    timer.reset();
    reading.reset();
  });
  const auto end = loop.after(milliseconds(5), [&] { loop.stop(); });

  loop.run();

  EXPECT_FALSE(called);
}

TEST(EventLoop, AnEventOfADroppedInterestDoesNotCallANewOne) {
  EventLoop loop;
  std::array<Pipe, 2> ready{make_pipe(), make_pipe()};
  const Pipe silent = make_pipe();
  std::array<EventLoop::Interest, 2> interests;
  EventLoop::Interest later;
  int called = 0;
  for (size_t i = 0; i < ready.size(); ++i) {
    write_to(ready[i].writer, "x");
    // The first one that is called drops both, while the event of the other one is in the queue.
    interests[i] = loop.when_readable(ready[i].reader.get(), [&] {
      for (EventLoop::Interest& interest : interests) interest.reset();
      later = loop.when_readable(silent.reader.get(), [&] { ++called; });
    });
  }
  const EventLoop::Interest end = loop.after(milliseconds(50), [&] { loop.stop(); });

  loop.run();

  EXPECT_EQ(called, 0);
}

TEST(EventLoop, ADroppedInterestLeavesTheDescriptorOpen) {
  EventLoop loop;
  const Pipe pipe = make_pipe();
  {
    const auto interest = loop.when_readable(pipe.reader.get(), [] {});
  }

  write_to(pipe.writer, "x");
  EXPECT_EQ(read_one(pipe.reader), 'x');
}

TEST(EventLoop, ADroppedInterestDestroysTheObjectsOfItsCallback) {
  EventLoop loop;
  const auto held = std::make_shared<int>(1);
  auto outside = loop.after(hours(1), [held] {});
  auto inside = loop.after(hours(1), [held] {});

  outside.reset();
  EXPECT_EQ(held.use_count(), 2);

  loop.post([&] { inside.reset(); });
  loop.post([&] { loop.post([&] { loop.stop(); }); });
  loop.run();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(EventLoop, CallsOnceWhenADescriptorIsWritable) {
  EventLoop loop;
  const Pipe pipe = make_pipe();
  int calls = 0;
  const auto interest = loop.when_writable(pipe.writer.get(), [&] {
    ++calls;
    loop.post([&] { loop.stop(); });
  });

  loop.run();

  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, OneDescriptorCanBeWatchedForReadingAndWritingAtOnce) {
  EventLoop loop;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::vector<std::string> seen;
  const auto writing = loop.when_writable(ours.get(), [&] {
    seen.emplace_back("writable");
    write_to(theirs, "x");
  });
  const auto reading = loop.when_readable(ours.get(), [&] {
    seen.emplace_back("readable");
    loop.stop();
    read_one(ours);
  });

  loop.run();

  EXPECT_EQ(seen, (std::vector<std::string>{"writable", "readable"}));
}

TEST(EventLoop, ANestedRunEndsAloneAndTheOuterRunContinues) {
  EventLoop loop;
  std::string order;
  loop.post([&] {
    loop.post([&] {
      order += "inner ";
      loop.stop();
    });
    loop.run();
    order += "outer ";
    loop.post([&] {
      order += "later";
      loop.stop();
    });
  });

  loop.run();

  EXPECT_EQ(order, "inner outer later");
}

}  // namespace
namespace {

TEST(Background, RunsWorkOnAnotherThreadAndDoneOnTheLoopsThread) {
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

TEST(Background, RunsOnePieceAfterAnother) {
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

TEST(Background, TheLoopContinuesWhileAPieceBlocks) {
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

TEST(Background, WaitsForTheCurrentPieceOnDestructionAndDropsTheOthers) {
  EventLoop loop;
  std::promise<void> begun;
  std::promise<void> dropped;
  std::string ran;
  auto background = std::make_unique<Background>(loop);
  background->run(
      [&] {
        begun.set_value();
        // Lasts until the other piece is dropped, that is until the destructor runs.
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
  loop.run();  // `done` of the first piece is waiting there, but is not called any more
  EXPECT_EQ(ran, "first");
}

/// No thread can be started while an object of this class exists: the stack of a new thread would
/// be larger than the address space.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge{};
    ::pthread_attr_init(&huge);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
    ::pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

TEST(Background, KeepsItsPiecesWhileNoThreadCanBeStarted) {
  EventLoop loop;
  Background background(loop);
  std::string order;
  {
    const NoThreads none;
    background.run([&] { order += 'a'; }, [] {});
    background.run([&] { order += 'b'; }, [&] { loop.stop(); });
  }

  loop.run();

  EXPECT_EQ(order, "ab");
}

TEST(Background, DropsItsPiecesIfNoThreadWasStarted) {
  EventLoop loop;
  const NoThreads none;
  auto background = std::make_unique<Background>(loop);
  const auto held = std::make_shared<int>();
  background->run([held] {}, [] {});

  background.reset();

  EXPECT_EQ(held.use_count(), 1);
}

TEST(Background, EndsAtOnceIfItWasNeverUsed) {
  EventLoop loop;
  const Background background(loop);
}

}  // namespace
}  // namespace muster::base
