#include "engine/shim/run_wire.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "engine/shim/attachments.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

namespace {

constexpr char kStartPacket = 'p';
constexpr char kBegunPacket = 'b';
constexpr char kRefusedPacket = 'n';
constexpr char kOutputEndPacket = 'c';
constexpr char kEndedPacket = 'q';
constexpr char kOutputName = 'o';
constexpr char kErrorName = 'x';

Error none() {
  return {.code = ErrorCode::kInvalid,
          .what = "unknown message between the engine and the task's shim"};
}

std::string payload_of(const RunStart& start) {
  std::string head = base::json_text(
      json{{"inherits", start.inherits}, {"rows", start.rows}, {"columns", start.columns}});
  return head.append(1, '\n').append(encode(start.program));
}

std::string payload_of(const Error& error) {
  const json text{{"code", to_string(error.code)}, {"what", error.what}, {"advice", error.advice}};
  return base::json_text(text);
}

struct EncodeRun {
  std::string operator()(const RunStart& start) const {
    return packet(kStartPacket, payload_of(start));
  }
  std::string operator()(const RunBegun&) const { return packet(kBegunPacket, ""); }
  std::string operator()(const RunRefused& refused) const {
    return packet(kRefusedPacket, payload_of(refused.error));
  }
  std::string operator()(const RunOutputEnd& end) const {
    return packet(kOutputEndPacket, {end.is_error ? &kErrorName : &kOutputName, 1});
  }
  std::string operator()(const RunEnded& ended) const {
    return packet(kEndedPacket, engine::encode(ended.record));
  }
  template <class Attach>
  std::string operator()(const Attach& message) const {
    return engine::encode(AttachMessage(message));
  }
};

// nlohmann throws on a missing or mistyped member; this function turns that into an error.
Result<RunStart> decode_start(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return none();
  MUSTER_TRY(InnerPlan program, decode_inner_plan(text.substr(line + 1)));
  const json head = base::parse_json_or_throw(text.substr(0, line));
  return RunStart{.program = std::move(program),
                  .inherits = head.at("inherits").get<bool>(),
                  .rows = head.at("rows").get<int>(),
                  .columns = head.at("columns").get<int>()};
}

RunRefused refused_of(std::string_view text) {
  const json error = base::parse_json_or_throw(text);
  return {.error = {.code = base::error_code_of(error.at("code").get<std::string>()),
                    .what = error.at("what").get<std::string>(),
                    .advice = error.at("advice").get<std::string>()}};
}

Result<RunMessage> output_end_of(std::string_view name) {
  if (name.size() != 1 || (name[0] != kOutputName && name[0] != kErrorName)) return none();
  return RunMessage(RunOutputEnd{.is_error = name[0] == kErrorName});
}

Result<RunMessage> run_message_of(char tag, std::string_view rest) {
  switch (tag) {
    case kStartPacket: {
      MUSTER_TRY(RunStart start, decode_start(rest));
      return RunMessage(std::move(start));
    }
    case kBegunPacket:
      return rest.empty() ? Result<RunMessage>(RunBegun{}) : none();
    case kRefusedPacket:
      return RunMessage(refused_of(rest));
    case kOutputEndPacket:
      return output_end_of(rest);
    case kEndedPacket: {
      MUSTER_TRY(ExitRecord record, decode_exit(rest));
      return RunMessage(RunEnded{std::move(record)});
    }
    default: {
      MUSTER_TRY(AttachMessage message, decode_attach(tag, rest));
      return std::visit([](auto& of_attach) { return RunMessage(std::move(of_attach)); }, message);
    }
  }
}

}  // namespace

std::string encode_run(const RunMessage& message) {
  const std::string packet = std::visit(EncodeRun{}, message);
  return base::encode_frame(packet.front(), std::string_view(packet).substr(1));
}

Result<RunMessage> decode_run(char tag, std::string_view bytes) {
  try {
    return run_message_of(tag, bytes);
  } catch (const json::exception&) {
    return none();
  }
}

std::optional<RunMessage> RunReader::next() {
  if (broken_) return std::nullopt;
  const auto frame = frames_.front();
  broken_ = !frame;
  if (broken_ || !*frame) return std::nullopt;
  auto message = decode_run((*frame)->tag, (*frame)->bytes);
  frames_.pop(**frame);
  broken_ = !message;
  return message ? std::optional(*std::move(message)) : std::nullopt;
}

}  // namespace muster::engine
