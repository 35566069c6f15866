// Shows an error in place of a view that threw.
import {Component, type ComponentChildren} from 'preact';
import {ErrorNote, Page} from './parts';

interface Props {
  /** Where the page is. At another place, the view is shown again. */
  at: string;
  children: ComponentChildren;
}

export class ErrorBoundary extends Component<Props, {fault: unknown}> {
  override state = {fault: null as unknown};
  static override getDerivedStateFromError(fault: unknown) {
    return {fault};
  }
  override componentDidUpdate(before: Props) {
    if (before.at !== this.props.at && this.state.fault) this.setState({fault: null});
  }
  override render() {
    if (!this.state.fault) return this.props.children;
    return (
      <Page title="This page failed">
        <ErrorNote error={this.state.fault} again={() => this.setState({fault: null})} />
      </Page>
    );
  }
}
