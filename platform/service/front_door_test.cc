#include "service/front_door.h"

#include <gtest/gtest.h>

#include <optional>

namespace muster::service {
namespace {

http::Handler saying(const std::string& text) {
  return [text](const http::Request&, const http::Respond& respond) { respond({.body = text}); };
}

int status_of(const http::Handler& handler, std::string& body) {
  std::optional<http::Response> answer;
  handler({}, [&](http::Response response) { answer = std::move(response); });
  if (!answer) return 0;
  body = answer->body;
  return answer->status;
}

TEST(FrontDoor, HandsRequestsToWhoeverAnswersAtTheTime) {
  FrontDoor door;
  const http::Handler handler = door.handler();
  std::string body;

  EXPECT_EQ(status_of(handler, body), 503);
  door.let_answer(saying("first"));
  EXPECT_EQ(status_of(handler, body), 200);
  EXPECT_EQ(body, "first");
  door.let_answer(saying("second"));
  EXPECT_EQ(status_of(handler, body), 200);
  EXPECT_EQ(body, "second");
}

TEST(FrontDoor, TurnsEverybodyAwayOnceItIsGone) {
  auto door = std::make_unique<FrontDoor>();
  const http::Handler handler = door->handler();
  door->let_answer(saying("first"));
  door.reset();
  std::string body;
  EXPECT_EQ(status_of(handler, body), 503);
}

TEST(FrontDoor, WhoeverAnswersMayBeReplacedByHisOwnAnswer) {
  FrontDoor door;
  const std::string text(100, 'x');
  door.let_answer([&door, text](const http::Request&, const http::Respond& respond) {
    door.let_answer(saying("next"));
    respond({.body = text});
  });
  std::string body;
  EXPECT_EQ(status_of(door.handler(), body), 200);
  EXPECT_EQ(body, text);
}

}  // namespace
}  // namespace muster::service
