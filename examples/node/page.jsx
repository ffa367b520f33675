// The page of the support desk: the chat, with the approvals of the AI SDK.

import { useChat } from '@ai-sdk/react';
import { getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { createRoot } from 'react-dom/client';

const TICKET = 'ticket-17';
const stored = JSON.parse(localStorage.getItem(TICKET) ?? '[]');

function Call({ part, answer }) {
  const name = `${getToolName(part)} ${JSON.stringify(part.input)}`;
  switch (part.state) {
    case 'approval-requested':
      return (
        <p>
          {name} <button onClick={() => answer({ id: part.approval.id, approved: true })}>Approve</button>{' '}
          <button onClick={() => answer({ id: part.approval.id, approved: false })}>Deny</button>
        </p>
      );
    case 'output-available':
      return <p>{name}: {JSON.stringify(part.output)}</p>;
    case 'output-error':
      return <p>{name}: {part.errorText}</p>;
    case 'output-denied':
      return <p>{name}: denied</p>;
    default:
      return <p>{name} …</p>;
  }
}

function Desk() {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id: TICKET,
    messages: stored,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  localStorage.setItem(TICKET, JSON.stringify(messages));
  return (
    <main>
      <h1>Support desk</h1>
      {messages.map(message => (
        <section key={message.id}>
          <b>{message.role}</b>
          {message.parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>;
            return isToolUIPart(part) ? <Call key={index} part={part} answer={addToolApprovalResponse} /> : null;
          })}
        </section>
      ))}
      {error && <p>{error.message}</p>}
      <button disabled={status !== 'ready' || messages.length > 0} onClick={() => sendMessage({ text: 'Refund my orders.' })}>
        Refund my orders.
      </button>
    </main>
  );
}

createRoot(document.getElementById('desk')).render(<Desk />);
