#include "engine/slurm/program_link.h"

#include <string>
#include <utility>

namespace muster::engine::slurm {

namespace {

class ProgramLink : public RunLink {
 public:
  ProgramLink(std::shared_ptr<NodeConnection> line, const std::shared_ptr<RunConversation>& to)
      : line_(std::move(line)) {
    const std::weak_ptr<RunConversation> weak = to;
    line_->listen({.on_message =
                       [weak](const NodeMessage& message) {
                         const auto still = weak.lock();
                         const auto* const piece = std::get_if<StreamBytes>(&message);
                         if (still && piece != nullptr) still->take(piece->bytes);
                       },
                   .on_end =
                       [weak](const std::string&) {
                         if (const auto still = weak.lock()) still->hung_up();
                       },
                   .on_drain =
                       [weak] {
                         if (const auto still = weak.lock()) still->drained();
                       }});
  }
  void write(std::string_view bytes) override {
    line_->send(StreamBytes{.bytes = std::string(bytes)});
  }
  size_t waiting() const override { return line_->waiting(); }
  void pause(bool paused) override { line_->pause(paused); }

 private:
  std::shared_ptr<NodeConnection> line_;
};

}  // namespace

std::unique_ptr<RunLink> link_program(std::shared_ptr<NodeConnection> line,
                                      const std::shared_ptr<RunConversation>& to) {
  return std::make_unique<ProgramLink>(std::move(line), to);
}

}  // namespace muster::engine::slurm
