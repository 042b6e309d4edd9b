//! Rules: who may do what, compared with an interpreter of rules that shares no code with the server.

mod examples;
