#include "engine/container/container_exec.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "engine/container/container_plan.h"
#include "engine/engine_errors.h"
#include "engine/shim/run_wire.h"

namespace muster::engine {

namespace {

using base::Error;
using base::Result;

std::string program(const char* name) {
  return std::string(kProgramsFolder) + "/" + name;
}

/// The program to run. A helper is a program of Muster's own and gets nothing of the task's
/// environment.
RunStart start_of(const ExecPlan& plan) {
  RunStart start;
  start.program.argv = plan.argv;
  start.program.terminal = plan.terminal;
  start.rows = plan.rows;
  start.columns = plan.columns;
  start.inherits = plan.helper == Helper::kNone;
  for (const auto& [name, value] : plan.environment) {
    start.program.environment.push_back(name + "=" + value);
  }
  if (const std::string word = word_of(plan.helper); !word.empty()) {
    start.program.argv.insert(start.program.argv.begin(), {program("muster-helper"), word});
    start.program.environment.clear();
  }
  return start;
}

class DockerLink : public RunLink {
 public:
  explicit DockerLink(std::unique_ptr<DockerStream> stream) : stream_(std::move(stream)) {}
  void write(std::string_view bytes) override { stream_->write(bytes); }
  size_t waiting() const override { return stream_->waiting(); }
  void pause(bool paused) override { stream_->pause(paused); }

 private:
  std::unique_ptr<DockerStream> stream_;
};

void open_stream(DockerClient& client, const std::string& exec,
                 const std::shared_ptr<RunConversation>& conversation) {
  const std::weak_ptr<RunConversation> weak = conversation;
  client.start_exec(exec, false,
                    {.on_output =
                         [weak](std::string_view bytes, bool is_error) {
                           const auto still = weak.lock();
                           if (still && !still->has_ended()) {
                             is_error ? still->hear_words(bytes) : still->take(bytes);
                           }
                         },
                     .on_end =
                         [weak] {
                           if (const auto still = weak.lock()) still->hung_up();
                         },
                     .on_drain =
                         [weak] {
                           if (const auto still = weak.lock()) still->drained();
                         }},
                    [conversation](Result<std::unique_ptr<DockerStream>> stream) {
                      if (conversation->has_ended()) return;  // dropped with what has come
                      if (!stream) return conversation->cut(std::move(stream).error());
                      conversation->connected(std::make_unique<DockerLink>(*std::move(stream)));
                    });
}

void create_shim_exec(DockerClient& client, const std::string& container, const char* how,
                      const std::shared_ptr<RunConversation>& conversation) {
  client.create_exec(container,
                     {.argv = {program("muster-shim"), how, kTaskFolder},
                      .environment = {},
                      .user = {},
                      .folder = "/"},
                     [&client, conversation](Result<std::string> id) {
                       if (conversation->has_ended()) return;
                       id ? open_stream(client, *id, conversation)
                          : conversation->cut(std::move(id).error());
                     });
}

}  // namespace

std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers) {
  // A program that vanishes without a report was killed with its task.
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  conversation->say(start_of(plan));
  create_shim_exec(client, container, "--run", conversation);
  return near_end_of(conversation);
}

std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers) {
  const auto conversation = std::make_shared<RunConversation>(
      loop, job::ExitStatus{.lost = true, .error = "the task's terminal is gone"},
      std::move(handlers));
  conversation->hear_end_of(std::move(end));
  create_shim_exec(client, container, "--attach", conversation);
  return near_end_of(conversation);
}

}  // namespace muster::engine
